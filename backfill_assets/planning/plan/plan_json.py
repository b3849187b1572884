"""Write a plan as JSON text and read it back, checked against its own hash.

Keys are the attributes of the values in `planning.plan` and `planning.request`; `json_forms` says how
instants and cells are written, and `docs/plan.schema.json` describes the whole. The hash is over a text of
its own, so that it is computed fast, and stays the same when a later release adds an attribute.
"""

from __future__ import annotations

import hashlib
import json
import struct
from dataclasses import fields, is_dataclass, replace
from datetime import datetime
from enum import Enum
from functools import cache
from textwrap import shorten
from typing import TYPE_CHECKING, Any, cast

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.json_forms import instant_form
from backfill_assets.planning.plan.plan import FORMAT_VERSION, Plan, PlannedBatch
from backfill_assets.planning.plan.plan_batches import PlannedBatches, columns

if TYPE_CHECKING:
    from collections.abc import Sequence

FORMAT = "backfill_assets.plan"
_DIGITS = 9
_NOT_CONTENT = ("plan_id", "estimate")
_LATER = (
    "late", "lift_cutoffs", "kept_before", "kept_rows", "batch_size", "canaries", "expect", "contract",
    "dual_run_days", "pause_schedules", "group", "own",
)  # fmt: skip
_WHY = "it was edited, or another release of backfill_assets wrote it"
_SHOWN = 60


class PlanFormatError(BackfillAssetsError):
    """A text is not a plan, or was edited after this project wrote it."""

    def __init__(self, found: str, do: str) -> None:
        self.found = found
        super().__init__(f"this is not a plan that can be applied: {found}; {do}")


def plan_json(plan: Plan) -> str:
    """Write a plan as JSON text, with its content hash."""
    return to_json(plan_document(plan), indent=1).decode()


def plan_document(plan: Plan) -> dict[str, Any]:
    """Write a plan as plain values, with its content hash."""
    plain = adapter().dump_python(plan, mode="json")
    return {"format": FORMAT, "content_hash": content_hash(plan), **plain}


@cache
def adapter() -> TypeAdapter[Plan]:
    """Give what writes, reads and describes plans; made once, and only by a process that needs it."""
    return TypeAdapter(Plan)


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
        problem = f"its format_version is {version}, and this release reads up to {FORMAT_VERSION}"
        raise PlanFormatError(problem, "upgrade backfill_assets, or make the plan again")
    try:
        plan = adapter().validate_json(_without_marks(plain), strict=True, extra="forbid")
        content = content_hash(plan)
    except ValidationError as error:
        raise PlanFormatError(f"{_first_of(error)}: {_WHY}", again) from error
    except (ValueError, struct.error) as error:
        raise PlanFormatError(f"its batches can't be read ({error}): {_WHY}", again) from error
    if plain.get("content_hash") != content:
        raise PlanFormatError(f"its content is not what its content_hash says: {_WHY}", again)
    if plan.plan_id != _id(content):
        problem = f"its plan_id '{plan.plan_id}' is not that of its content: {_WHY}"
        raise PlanFormatError(problem, again)
    return plan


def _without_marks(plain: dict[str, Any]) -> str:
    return json.dumps({key: plain[key] for key in plain.keys() - {"format", "content_hash"}})


def _first_of(error: ValidationError) -> str:
    """Say which value is the first that can't be read, and why."""
    first = error.errors(include_url=False, include_context=False)[0]
    where = ".".join(map(str, first["loc"]))
    match first["type"]:
        case "missing":
            return f"'{where}' can't be read, since it is missing"
        case "unexpected_keyword_argument":
            return f"'{where}' can't be read, since no such value is known"
        case _:
            value = shorten(json.dumps(first["input"], ensure_ascii=False), _SHOWN)
            message = (
                first["msg"].removeprefix("Value error, ").replace("Input should", "it should")
            )
            return f"'{where}' can't be read: {message}, found {value}"


def _content(value: Any) -> Any:  # noqa: ANN401, PLR0911 - one line per kind of value
    """Reduce a plan to what its hash covers: sets and batches as checksums, no id and no estimate."""
    if isinstance(value, IntervalSet):
        return _checksum(value.boundaries)
    if isinstance(value, (PlannedBatches, tuple)):
        values = cast("Sequence[Any]", value)
        if values and isinstance(values[0], PlannedBatch):
            return {name: _checksum(numbers) for name, numbers in columns(values).items()}
        return [_content(item) for item in values]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return instant_form(value)
    if is_dataclass(value):
        attributes = {field.name: getattr(value, field.name) for field in fields(value)}
        return {
            name: _content(attribute)
            for name, attribute in attributes.items()
            if _counts(name, attribute)
        }
    return value


def _counts(name: str, value: object) -> bool:
    """Whether a value is content: an empty attribute of a later release is not, so old hashes stay."""
    return name not in _NOT_CONTENT and (bool(value) or name not in _LATER)


def _checksum(numbers: Sequence[int]) -> str:
    """Sum up a long row of numbers, the same on every machine."""
    return hashlib.sha256(struct.pack(f"<{len(numbers)}q", *numbers)).hexdigest()
