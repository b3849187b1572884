"""Write the difference between two declarations of a model as text for a person.

Each attribute that differs has one hunk under its name; attributes that change rows come first. Queries
are printed anew on both sides, so spaces, line breaks and comments never show as an edit.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from difflib import SequenceMatcher
from enum import Enum
from textwrap import wrap
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.intervals.zones import zone_of
from backfill_assets.models.audit import PythonAudit
from backfill_assets.models.automation import Automation
from backfill_assets.models.kind import AbsentMeansDeleted, KeepsDeleted
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.sql.sql_analysis import AsWritten
from backfill_assets.models.upstream import OwnCells

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.column import Column
    from backfill_assets.models.kind import Deletes
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream

_CONTEXT = 2
_WIDTH = 88
_TEXTS = ("query", "columns")


def model_diff(old: Model | None, new: Model | None) -> str:
    """Write the difference: lines begin with ``-`` (as it runs), ``+`` (as declared) or a space.

    Args:
        old: what the environment runs; None for a model that is new.
        new: what is declared; None for a removed model.

    Returns:
        Text without a newline at its end; empty when only spelling differs.
    """
    before, after = _sections(old), _sections(new)
    lines: list[str] = []
    for name in before or after:
        lines += _hunks(name, before.get(name, []), after.get(name, []))
    return "\n".join(lines)


def _hunks(name: str, before: list[str], after: list[str]) -> Iterator[str]:
    """Write the hunks of one attribute; an attribute with a single value needs no heading."""
    if max(len(before), len(after)) == 1 and name not in _TEXTS:
        if before != after:
            yield from (f"- {name}: {line}" for line in before)
            yield from (f"+ {name}: {line}" for line in after)
        return
    # The comma at a line's end belongs to what follows: it is no edit of the line.
    bare = [[line.removesuffix(",") for line in lines] for lines in (before, after)]
    matcher = SequenceMatcher(None, *bare, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        yield f"@@ {name} @@"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f"  {line}" for line in after[c:d])
            else:
                yield from (f"- {line}" for line in before[a:b])
                yield from (f"+ {line}" for line in after[c:d])


def _sections(model: Model | None) -> dict[str, list[str]]:
    """Give every attribute's lines by its name, in the order of reading."""
    if model is None:
        return {}
    sections = {
        "query": _query(model),
        "columns": [_column(column) for column in model.schema],
        "upstreams": [_upstream(read) for read in model.reads],
        "kind": [_worded(model.kind)],
        "cadence": [_cadence(model.cadence)],
        "unique key": [", ".join(model.key)],
        "deletes": [_deletes(model.delete_policy)],
        "times": _attributes(model.times),
        "audits": [line for audit in model.audits for line in _audit(audit)],
        "late window": _number(model.late_window),
        "batch size": _number(model.batch_size or 0),
        "batches at once": _number(model.batch_concurrency - 1 and model.batch_concurrency),
        "batch timeout": [] if model.batch_timeout is None else [f"{model.batch_timeout:g} s"],
        "key ranges": [] if model.key_ranges is None else [_worded(model.key_ranges)],
        "audit columns": ["yes"] if model.audit_columns else [],
        "volatile": ["yes"] if model.volatile else [],
        "forward only": ["yes"] if model.forward_only else [],
        "spark": [f"{key} = {value}" for key, value in model.spark_settings.items()],
        "spark off-peak": [f"{key} = {value}" for key, value in model.off_peak_settings.items()],
        "automation": [] if model.automated is Automation.ON else [model.automated.value],
        "grain": [model.grain],
        "description": wrap(model.description, _WIDTH),
        "owner": [model.owner],
        "tags": [", ".join(f"{key}={value}" for key, value in sorted(model.tags.items()))],
    }
    return {name: [line for line in lines if line] for name, lines in sections.items()}


def _query(model: Model) -> list[str]:
    query = model.logic
    if not isinstance(query, SqlQuery):
        return query.shown().splitlines()
    tree = query.analysis()
    if tree is None:  # its layout may hide parts that can't be parsed
        return query.sql.strip().splitlines()
    return tree.sql(
        dialect=AsWritten, pretty=True, comments=False, max_text_width=_WIDTH
    ).splitlines()


def _audit(audit: Audit) -> list[str]:
    if not isinstance(audit, PythonAudit):
        return [f"{audit.name}: {_worded(audit)}"]
    says = f"{audit.name}: the {audit.severity.value} function {audit.query.name}"
    return [says, *audit.query.shown().splitlines()]


def _upstream(upstream: Upstream) -> str:
    return ", ".join([upstream.name, *_attributes(upstream)])


def _deletes(policy: Deletes) -> str:
    match policy:
        case KeepsDeleted():
            return "none"
        case AbsentMeansDeleted():
            return "absent"
        case _:
            return _worded(policy)


def _cadence(cadence: Cadence) -> str:
    parts = [f"{cadence.unit.value}, {cadence.tz}"]
    parts += [f"from {_local(cadence, cadence.start)}"] if cadence.start else []
    parts += [f"to before {_local(cadence, cadence.end)}"] if cadence.end else []
    parts += [f"due at {cadence.cron}"] if cadence.cron else []
    parts += [f"({cadence.cron_tz})"] if cadence.cron and cadence.cron_tz else []
    return " ".join(parts)


def _local(cadence: Cadence, instant: datetime) -> str:
    return instant.astimezone(zone_of(cadence.tz)).strftime("%Y-%m-%d %H:%M").removesuffix(" 00:00")


def _column(column: Column) -> str:
    parts = [f"{column.name} {column.dtype}"]
    parts += [] if column.nullable else ["not null"]
    parts += ["unique"] if column.unique else []
    parts += [] if column.tolerance is None else [f"tolerance {column.tolerance:g}"]
    parts += [] if column.shown is None else ["shown" if column.shown else "never shown"]
    parts += [
        f"{predicate} (warns)" if check in column.warns else predicate
        for check, predicate in column.checks
    ]
    words = f" -- {column.description}" if column.description else ""
    return ", ".join(parts) + words


def _number(value: int) -> list[str]:
    return [str(value)] if value else []


def _worded(value: object) -> str:
    """Write a declaration as its author could have: only attributes that differ from their defaults."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, OwnCells):
        return f"own_cells({value.count})"
    if isinstance(value, tuple):
        return ", ".join(map(_worded, cast("tuple[object, ...]", value)))
    if is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}({', '.join(_attributes(value))})"
    return str(value)


def _attributes(value: Any) -> list[str]:  # noqa: ANN401 - any dataclass of a declaration
    given: Mapping[str, object] = {
        field.name: getattr(value, field.name)
        for field in fields(value)
        if field.name != "name" and getattr(value, field.name) != field.default
    }
    return [f"{name}={_worded(attribute)}" for name, attribute in given.items()]
