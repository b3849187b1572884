"""Read the options of a plan as people write them, on the command line or on the launchpad."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import InstantFormatError, read
from backfill_assets.models.spark_tuning import spark_tuning
from backfill_assets.planning.plan.request import Category, KeptRows, Restatement, Strategy

if TYPE_CHECKING:
    from collections.abc import Iterable

_RESTATED = "MODEL, MODEL:DATE or MODEL:FIRST..LAST"
_Choice = TypeVar("_Choice", bound=StrEnum)


def restatements(asked: Iterable[str] | None) -> tuple[Restatement, ...]:
    """Read ``MODEL``, ``MODEL:A..B`` or ``MODEL:A`` as restatements.

    Raises:
        RequestError: one of them is none of these.
    """
    return tuple(map(_restatement, asked or ()))


def _restatement(text: str) -> Restatement:
    name, colon, span = text.partition(":")
    start, dots, end = (part.strip() for part in span.partition(".."))
    if not name.strip() or (colon and not start and not end):
        raise RequestError(found=f"--restate {text!r} can't be read: expected {_RESTATED}")
    return restatement(name, start, end if dots else start)


def restatement(name: str, first: str = "", last: str = "") -> Restatement:
    """Read a restatement field by field; an empty field means everything before, or after.

    Raises:
        RequestError: nothing is named.
    """
    if not name.strip():
        text = f"{name}:{first}..{last}"
        raise RequestError(found=f"--restate {text!r} can't be read: expected {_RESTATED}")
    return Restatement(name.strip(), first.strip() or None, last.strip() or None)


def chosen(asked: Iterable[str] | None) -> tuple[str, ...]:
    """Read selectors that are given one by one, or with commas between them; an empty one only where it is alone."""
    parts = tuple(part.strip() for option in asked or () for part in option.split(","))
    return tuple(part for part in parts if part) or parts[:1]


def categories(asked: Iterable[str] | None) -> tuple[tuple[str, Category], ...]:
    """Read ``MODEL=CATEGORY``.

    Raises:
        RequestError: it has no ``=``, or there is no such category.
    """
    return tuple(_decided("--category", choice, Category) for choice in asked or ())


def strategies(asked: Iterable[str] | None) -> tuple[tuple[str, Strategy], ...]:
    """Read ``MODEL=STRATEGY``.

    Raises:
        RequestError: it has no ``=``, or there is no such strategy.
    """
    return tuple(_decided("--strategy", choice, Strategy) for choice in asked or ())


def instant(asked: str | None, option: str = "--now") -> datetime | None:
    """Read an instant; by default the one that a plan is to be made as of.

    Raises:
        RequestError: it is no instant with its offset.
    """
    if not asked:
        return None
    try:
        parsed = read(asked)
    except InstantFormatError:
        parsed = None
    if not isinstance(parsed, datetime):
        expected = "an instant with its offset, such as 2024-01-31T06:00:00Z"
        raise RequestError(found=f"{option} {asked!r} can't be read: expected {expected}")
    return parsed


def kept_rows(asked: str | None) -> KeptRows | None:
    """Read ``carry`` or ``drop``.

    Raises:
        RequestError: it is neither.
    """
    for choice in KeptRows:
        if asked is not None and _plain(asked) == choice.value:
            return choice
    if asked:
        raise RequestError(found=f"--kept-rows {asked!r} can't be read: expected carry or drop")
    return None


def spark(asked: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """Read ``KEY=VALUE``.

    Raises:
        RequestError: there is no value.
        DeclarationError: it is no setting that a batch can have of its own.
    """
    written: dict[str, object] = {}
    for setting in asked or ():
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise RequestError(
                found=f"--spark {setting!r} can't be read: expected KEY=VALUE, such as "
                "spark.sql.shuffle.partitions=64"
            )
        written[key] = value
    return tuple(spark_tuning("the plan", written).items())


def _decided(option: str, text: str, choices: type[_Choice]) -> tuple[str, _Choice]:
    model, _, word = (part.strip() for part in text.partition("="))
    for choice in choices:
        if model and _plain(word) == _plain(choice.value):
            return model, choice
    names = ", ".join(choice.value.replace(" ", "-") for choice in choices)
    raise RequestError(found=f"{option} {text!r} can't be read: expected MODEL=ONE of {names}")


def _plain(word: str) -> str:
    return word.lower().replace("_", "-").replace(" ", "-")
