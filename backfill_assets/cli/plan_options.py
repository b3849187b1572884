"""The options that ask something of a plan, and how they are read."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.spark_tuning import spark_tuning
from backfill_assets.planning.request import Category, KeptRows, Restatement, Strategy

if TYPE_CHECKING:
    from collections.abc import Iterable

_Choice = TypeVar("_Choice", bound=StrEnum)


class PlanOptionError(BackfillAssetsError):
    """The value of an option can't be read."""

    def __init__(self, option: str, found: str, expected: str) -> None:
        self.option, self.found = option, found
        super().__init__(f"{option} {found!r} can't be read: expected {expected}")


Environment = Annotated[
    str, typer.Argument(metavar="[ENV]", help="The environment; a new one follows prod.")
]
Restate = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MODEL[:A..B]",
        help="A model or source that was wrong, all of it or from A to B (dates included). Repeatable.",
    ),
]
AllSnapshots = Annotated[
    bool,
    typer.Option(
        "--restate-all-snapshots", help="Mark it owed in every version, of every environment."
    ),
]
Start = Annotated[
    str | None, typer.Option(metavar="WHEN", help="First date, or instant with offset.")
]
End = Annotated[
    str | None, typer.Option(metavar="WHEN", help="Last date (included), or instant (excluded).")
]
EndBounded = Annotated[
    bool, typer.Option("--end-bounded", help="Nothing past the end, whatever whole cells add.")
]
IgnoreCron = Annotated[
    bool, typer.Option("--ignore-cron", help="Up to now, whatever the cron says.")
]
Chosen = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="MODEL",
        help="Names, globs, +model, model+, tag:key=value, owner:name; repeatable, or with commas.",
    ),
]
SkipUpstream = Annotated[
    bool, typer.Option("--skip-upstream", help="Not what the selected models need from upstream.")
]
ForwardOnly = Annotated[
    bool, typer.Option("--forward-only", help="Changes count from now on; no history is computed.")
]
EffectiveFrom = Annotated[
    str | None, typer.Option(metavar="DATE", help="From this local date on; needs --forward-only.")
]
Empty = Annotated[
    bool, typer.Option("--empty", help="Record missing cells as ready without computing.")
]
Where = Annotated[
    str | None,
    typer.Option(
        metavar="SQL",
        help="Only rows of the restated model that fulfil this may differ; needs --restate.",
    ),
]
Cutoff = Annotated[
    str | None,
    typer.Option(metavar="DATE", help="Older cells keep the old definition; needs --reason."),
]
LiftCutoffs = Annotated[
    list[str] | None,
    typer.Option(
        "--lift-cutoff",
        metavar="MODEL",
        help="End its cutoff: older cells get the definition that runs now. Repeatable.",
    ),
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the history.")]
Canary = Annotated[
    bool, typer.Option("--canary", help="Recorded in the plan; nothing acts on it yet.")
]
Categories = Annotated[
    list[str] | None,
    typer.Option(
        "--category",
        metavar="MODEL=CATEGORY",
        help="Decide what a change means: breaking, non-breaking, forward-only, metadata. Repeatable.",
    ),
]
Strategies = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        metavar="MODEL=STRATEGY",
        help="Decide how: full-rebuild, partition-repair, column-enrichment, dual-run. Repeatable.",
    ),
]
Kept = Annotated[
    str | None,
    typer.Option(
        "--kept-rows",
        metavar="carry|drop",
        help="What a breaking change does with rows whose source is gone, where a model keeps them.",
    ),
]
Spark = Annotated[
    list[str] | None,
    typer.Option(
        "--spark",
        metavar="KEY=VALUE",
        help="A Spark setting for the plan's batches, over those of their models. Repeatable.",
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--out", metavar="FILE", help="Write the plan here too, for `backfill apply FILE`."
    ),
]


def restatements(asked: Iterable[str] | None) -> tuple[Restatement, ...]:
    """Read ``MODEL``, ``MODEL:A..B`` or ``MODEL:A`` as what was wrong.

    Raises:
        PlanOptionError: one of them is none of these.
    """
    return tuple(map(_restatement, asked or ()))


def _restatement(asked: str) -> Restatement:
    name, colon, span = asked.partition(":")
    start, dots, end = (part.strip() for part in span.partition(".."))
    if not name.strip() or (colon and not start and not end):
        raise PlanOptionError("--restate", asked, "MODEL, MODEL:DATE or MODEL:FIRST..LAST")
    return Restatement(name.strip(), start or None, (end if dots else start) or None)


def chosen(asked: Iterable[str] | None) -> tuple[str, ...]:
    """Read selectors that are given one by one, or with commas between them."""
    parts = (part.strip() for one in asked or () for part in one.split(","))
    return tuple(part for part in parts if part)


def categories(asked: Iterable[str] | None) -> tuple[tuple[str, Category], ...]:
    """Read ``MODEL=CATEGORY``.

    Raises:
        PlanOptionError: it has no ``=``, or there is no such category.
    """
    return tuple(_decided("--category", one, Category) for one in asked or ())


def strategies(asked: Iterable[str] | None) -> tuple[tuple[str, Strategy], ...]:
    """Read ``MODEL=STRATEGY``.

    Raises:
        PlanOptionError: it has no ``=``, or there is no such strategy.
    """
    return tuple(_decided("--strategy", one, Strategy) for one in asked or ())


def kept_rows(asked: str | None) -> KeptRows | None:
    """Read ``carry`` or ``drop``.

    Raises:
        PlanOptionError: it is neither.
    """
    for choice in KeptRows:
        if asked is not None and _plain(asked) == choice.value:
            return choice
    if asked:
        raise PlanOptionError("--kept-rows", asked, "carry or drop")
    return None


def spark(asked: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """Read ``KEY=VALUE``.

    Raises:
        PlanOptionError: there is no value.
        SparkSettingError: it is no setting that a batch can have of its own.
    """
    written: dict[str, object] = {}
    for one in asked or ():
        key, equals, value = (part.strip() for part in one.partition("="))
        if not equals:
            raise PlanOptionError(
                "--spark", one, "KEY=VALUE, such as spark.sql.shuffle.partitions=64"
            )
        written[key] = value
    return tuple(spark_tuning("the plan", written).items())


def _decided(option: str, asked: str, choices: type[_Choice]) -> tuple[str, _Choice]:
    model, _, word = (part.strip() for part in asked.partition("="))
    for choice in choices:
        if model and _plain(word) == _plain(choice.value):
            return model, choice
    known = ", ".join(choice.value.replace(" ", "-") for choice in choices)
    raise PlanOptionError(option, asked, f"MODEL=ONE of {known}")


def _plain(word: str) -> str:
    return word.lower().replace("_", "-").replace(" ", "-")
