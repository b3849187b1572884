"""Write a plan as JSON text and read it back, checked against its own hash.

Keys are the attributes of the values in `planning.plan` and `planning.request`; instants are ISO
texts in UTC, intervals ``[start, end)`` are pairs of them, a set of intervals is a list of pairs.
`docs/plan.schema.json` describes it.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Sequence
from dataclasses import MISSING, fields, is_dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, cast, get_args, get_origin, get_type_hints

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan import plan as plan_words, request as request_words
from backfill_assets.planning.plan.batch_size import BatchSize
from backfill_assets.planning.plan.plan import FORMAT_VERSION, Plan, PlannedBatch
from backfill_assets.planning.plan.plan_batches import PlannedBatches, columns
from backfill_assets.snapshots.cutoff import Cutoff

FORMAT = "backfill_assets.plan"
_DIGITS = 9
_NOT_CONTENT = ("plan_id", "estimate")
_LATER = ("late", "lift_cutoffs", "kept_before", "kept_rows", "batch_size")
_WHY = "it was edited, or another release of backfill_assets wrote it"


class PlanFormatError(BackfillAssetsError):
    """A text is not a plan of ours that can still be trusted."""

    def __init__(self, found: str, do: str) -> None:
        self.found = found
        super().__init__(f"this is not a plan that can be applied: {found}; {do}")


def plan_json(plan: Plan) -> str:
    """Write a plan as JSON text, with its content hash."""
    return json.dumps(plan_document(plan), indent=1, ensure_ascii=False)


def plan_document(plan: Plan) -> dict[str, Any]:
    """Write a plan as plain values, with its content hash."""
    plain = cast("dict[str, Any]", to_plain(plan))
    return {"format": FORMAT, "content_hash": content_hash(plan), **plain}


def content_hash(plan: Plan) -> str:
    """Hash a plan without its id and its estimates."""
    canonical = json.dumps(
        _content(plan), sort_keys=True, separators=(",", ":"), ensure_ascii=False
    )
    return hashlib.sha256(canonical.encode()).hexdigest()


def identified(plan: Plan) -> Plan:
    """Give a plan the id that follows from its content."""
    return replace(plan, plan_id=_id(content_hash(plan)))


def _id(content: str) -> str:
    return f"p{content[:_DIGITS]}"


def read_plan(text: str) -> Plan:
    """Read a plan written by `plan_json`.

    Raises:
        PlanFormatError: it is no plan, was edited by hand, or another release wrote it in a form that
            this one can't read.
    """
    again = "make it again with `backfill plan`"
    try:
        document = json.loads(text)
    except ValueError as error:
        raise PlanFormatError(f"it is not JSON ({error})", again) from error
    if not isinstance(document, dict) or cast("dict[str, Any]", document).get("format") != FORMAT:
        raise PlanFormatError(f'it does not say "format": "{FORMAT}"', "give a file of a plan")
    plain = cast("dict[str, Any]", document)
    version = plain.get("format_version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        found = f"its format_version is {version}, and this release reads up to {FORMAT_VERSION}"
        raise PlanFormatError(found, "upgrade backfill_assets, or make the plan again")
    try:
        plan = cast("Plan", from_plain(Plan, _without_marks(plain)))
        found = content_hash(plan)
    except (KeyError, TypeError, ValueError, struct.error, BackfillAssetsError) as error:
        raise PlanFormatError(f"a value in it can't be read ({error!r}): {_WHY}", again) from error
    if plain.get("content_hash") != found:
        raise PlanFormatError(f"its content is not what its content_hash says: {_WHY}", again)
    if plan.plan_id != _id(found):
        found = f"its plan_id '{plan.plan_id}' is not that of its content: {_WHY}"
        raise PlanFormatError(found, again)
    return plan


def _without_marks(plain: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in plain.items() if key not in ("format", "content_hash")}


def _content(value: Any) -> Any:  # noqa: ANN401, PLR0911 - one line per kind of value
    """Reduce a plan to what its hash covers: sets and batches as checksums, no id and no estimate."""
    if isinstance(value, IntervalSet):
        return _checksum(value.boundaries)
    if isinstance(value, (PlannedBatches, tuple)):
        values = cast("Sequence[Any]", value)
        if values and isinstance(values[0], PlannedBatch):
            return {name: _checksum(numbers) for name, numbers in columns(values).items()}
        return [_content(one) for one in values]
    if isinstance(value, (Enum, datetime)):
        return to_plain(value)
    if is_dataclass(value):
        said = {field.name: getattr(value, field.name) for field in fields(value)}
        return {name: _content(one) for name, one in said.items() if _counts(name, one)}
    return value


def _counts(name: str, value: object) -> bool:
    """Whether a value is content: an empty attribute of a later release is not, so old hashes stay."""
    return name not in _NOT_CONTENT and (bool(value) or name not in _LATER)


def _checksum(numbers: Sequence[int]) -> str:
    """Sum up a long row of numbers, the same on every machine."""
    return hashlib.sha256(struct.pack(f"<{len(numbers)}q", *numbers)).hexdigest()


def to_plain(value: Any) -> Any:  # noqa: ANN401, PLR0911 - one line per kind of value
    """Write a value of a plan with JSON's own types."""
    match value:
        case Enum():
            return value.value
        case IntervalSet():
            return [to_plain(one) for one in value]
        case Interval():
            return [_instant(value.start), _instant(value.end)]
        case datetime():
            return _instant(value)
        case str():
            return value
        case Sequence():
            return [to_plain(one) for one in cast("Sequence[Any]", value)]
        case _ if is_dataclass(value):
            return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value


def _instant(value: datetime) -> str:
    return value.astimezone(UTC).isoformat().replace("+00:00", "Z")


def from_plain(kind: Any, plain: Any) -> Any:  # noqa: ANN401, C901, PLR0911 - one line per kind
    """Read a value of a plan from JSON's own types.

    Raises:
        TypeError: the value is of another kind.
        ValueError: it can't be read.
    """
    if kind is IntervalSet:
        return IntervalSet.of(from_plain(Interval, one) for one in plain)
    if kind is Interval:
        start, end = plain
        return Interval(datetime.fromisoformat(start), datetime.fromisoformat(end))
    if kind is datetime:
        return datetime.fromisoformat(plain)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(plain)
    if isinstance(kind, type) and is_dataclass(kind):
        return _object(kind, plain)
    if get_origin(kind) is tuple:
        return _tuple(get_args(kind), plain)
    if get_origin(kind) is Sequence:
        return _tuple((*get_args(kind), ...), plain)
    if get_origin(kind) in (Union, UnionType):
        return None if plain is None else from_plain(_not_none(kind), plain)
    return _same(kind, plain)


def _object(kind: type, plain: Any) -> Any:  # noqa: ANN401
    if not isinstance(plain, dict):
        message = f"expected an object for {kind.__name__}, found {plain!r}"
        raise TypeError(message)
    given, hints = cast("dict[str, Any]", plain), hints_of(kind)
    unknown = sorted(given.keys() - hints.keys())
    if unknown:
        message = f"{kind.__name__} has no {', '.join(unknown)}"
        raise TypeError(message)
    missing = [
        field.name
        for field in fields(kind)
        if field.name not in given and field.default is MISSING and field.default_factory is MISSING
    ]
    if missing:
        message = f"{kind.__name__} lacks {', '.join(missing)}"
        raise TypeError(message)
    return kind(**{name: from_plain(hints[name], given[name]) for name in hints if name in given})


def _tuple(items: tuple[Any, ...], plain: Any) -> tuple[Any, ...]:  # noqa: ANN401
    if not isinstance(plain, list):
        message = f"expected a list, found {plain!r}"
        raise TypeError(message)
    values = cast("list[Any]", plain)
    if len(items) == 2 and items[1] is Ellipsis:  # noqa: PLR2004 - tuple[X, ...]
        return tuple(from_plain(items[0], value) for value in values)
    return tuple(from_plain(kind, one) for kind, one in zip(items, values, strict=True))


def _not_none(kind: Any) -> Any:  # noqa: ANN401
    return next(one for one in get_args(kind) if one is not NoneType)


def _same(kind: Any, plain: Any) -> Any:  # noqa: ANN401
    if kind is float and isinstance(plain, int):
        return float(plain)
    if not isinstance(plain, kind) or (kind is int and isinstance(plain, bool)):
        message = f"expected {kind.__name__}, found {plain!r}"
        raise TypeError(message)
    return plain


@cache
def hints_of(kind: type) -> dict[str, Any]:
    """Give the type of every attribute of a value of a plan."""
    names = {
        **vars(request_words),
        **vars(plan_words),
        "datetime": datetime,
        "Sequence": Sequence,
        "Interval": Interval,
        "IntervalSet": IntervalSet,
        "Cutoff": Cutoff,
        "BatchSize": BatchSize,
    }
    hints = get_type_hints(kind, localns=names)
    return {field.name: hints[field.name] for field in fields(kind)}
