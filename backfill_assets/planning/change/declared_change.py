"""Compare two declarations of a model, and decide whether the difference can change published rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.models.codec import dumps
from backfill_assets.models.column import AUDIT_COLUMNS
from backfill_assets.models.kind import IncrementalByUniqueKey, SoftDelete, Tombstone
from backfill_assets.models.python.function_query import changed_code
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.planning.change.sql_change import sql_change, sql_effect
from backfill_assets.planning.change.sql_edit import SqlEdit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.models.kind import Deletes
    from backfill_assets.models.model import Model, Query


_NOTHING: frozenset[str] = frozenset()
_CODE = "the function, or what it may use, changed"


@dataclass(frozen=True, slots=True)
class DeclaredChange:
    """One thing that differs and may change rows.

    Attributes:
        why: in words.
        rows: whether the row set may differ.
        columns: the output columns concerned; None for all.
        additive: whether it only adds columns.
        unproved: whether it may be no change at all, which a person may know.
    """

    why: str
    rows: bool = False
    columns: frozenset[str] | None = _NOTHING
    additive: bool = False
    unproved: bool = False


def declared_changes(old: Model, new: Model) -> tuple[DeclaredChange, ...]:
    """List the attributes that may change rows; those for descriptions and pace are left out."""
    return (*_rules(old, new), *_reads(old, new), *_query(old, new), *_columns(old, new))


def described_changes(old: Model, new: Model) -> tuple[str, ...]:
    """Name the attributes that differ and change no row."""
    pairs = {
        "grain": (old.grain, new.grain),
        "owner": (old.owner, new.owner),
        "description": (old.description, new.description),
        "tags": (dict(old.tags), dict(new.tags)),
        "audits": (old.audits, new.audits),
        "late window": (old.late_window, new.late_window),
        "batch size": (old.batch_size, new.batch_size),
        "batch concurrency": (old.batch_concurrency, new.batch_concurrency),
        "batch timeout": (old.batch_timeout, new.batch_timeout),
        "key ranges": (old.key_ranges, new.key_ranges),
        "times": (old.times, new.times),
        "volatile": (old.volatile, new.volatile),
        "forward-only": (old.forward_only, new.forward_only),
        "automation": (old.automation, new.automation),
        "Spark settings": (dict(old.spark), dict(new.spark)),
        "Spark settings off-peak": (dict(old.spark_off_peak), dict(new.spark_off_peak)),
        "start": (old.cadence.start, new.cadence.start),
        "end": (old.cadence.end, new.cadence.end),
        "cron": (
            (old.cadence.cron, old.cadence.cron_tz),
            (new.cadence.cron, new.cadence.cron_tz),
        ),
        "delete policy": (old.delete_policy, new.delete_policy),
        "rules and words of columns": (set(old.schema), set(new.schema)),
        "upstreams": (dumps(old.reads), dumps(new.reads)),
    }
    return tuple(name for name, (before, after) in pairs.items() if before != after)


def _rules(old: Model, new: Model) -> Iterator[DeclaredChange]:
    """The attributes that decide how rows become history: a change of one makes another table (P13b)."""
    pairs = {
        "kind": (old.kind, new.kind),
        "cadence": (old.cadence.unit, new.cadence.unit),
        "time zone": (old.cadence.tz, new.cadence.tz),
        "unique key": (old.key, new.key),
        "delete policy": (_followed_policy(old), _followed_policy(new)),
        "grain": (_words(old.grain), _words(new.grain)),
    }
    for name, (before, after) in pairs.items():
        if before != after:
            yield DeclaredChange(f"another {name}", rows=True, columns=None)
    if old.audit_columns != new.audit_columns:
        verb = "adds" if new.audit_columns else "drops"
        yield DeclaredChange(
            f"{verb} the audit columns",
            columns=frozenset(AUDIT_COLUMNS),
            additive=new.audit_columns,
        )


def _followed_policy(model: Model) -> Deletes | None:
    """Give a model's delete policy; None where cells are replaced as a whole, so that none is followed."""
    return model.delete_policy if isinstance(model.kind, IncrementalByUniqueKey) else None


def _reads(old: Model, new: Model) -> Iterator[DeclaredChange]:
    """The parts of its upstreams that a cell is computed from."""
    before = {read.name: read for read in old.reads}
    after = {upstream.name: upstream for upstream in new.reads}
    for name in sorted(before.keys() & after.keys()):
        if before[name].lookback != after[name].lookback:
            yield DeclaredChange(f"another lookback on {name}", rows=True, columns=None)
    if before.keys() != after.keys() and not isinstance(new.logic, SqlQuery):
        yield DeclaredChange("reads other upstreams", rows=True, columns=None)


def _query(old: Model, new: Model) -> Iterator[DeclaredChange]:
    match old.logic, new.logic:
        case SqlQuery() as before, SqlQuery() as after:
            yield from _sql(old, new, before, after)
        case (SqlQuery(), _) | (_, SqlQuery()):
            yield DeclaredChange(
                "SQL became a function, or a function SQL", rows=True, columns=None
            )
        case before, after:
            if changed_code(before, after):
                yield DeclaredChange(_CODE, rows=True, columns=None, unproved=True)


def _sql(old: Model, new: Model, before: SqlQuery, after: SqlQuery) -> Iterator[DeclaredChange]:
    change = sql_change(before, after)
    why = "; ".join(change.why)
    names = {column.name.lower(): column.name for column in (*old.schema, *new.schema)}
    touched = _declared(change.touched, names)
    columns = touched | _declared(change.added, names)
    if change.rows or touched & identifying(new):
        yield DeclaredChange(why, rows=True, columns=None)
    elif change.is_breaking:
        all_declared = change.touched | change.added <= names.keys()
        # A star may stand for any column.
        yield DeclaredChange(why, columns=columns if all_declared else None)
    elif change.added:
        yield DeclaredChange(why, columns=columns, additive=True)


def _declared(outputs: frozenset[str], names: Mapping[str, str]) -> frozenset[str]:
    """Spell outputs as they are declared; one without a declaration can't be published."""
    return frozenset(names[name] for name in outputs if name in names)


def identifying(model: Model) -> frozenset[str]:
    """The columns that decide which rows there are: another value there is another row."""
    columns = {*model.key, model.time_column or ""}
    if isinstance(model.kind, IncrementalByUniqueKey):
        columns.add(model.kind.latest_by or "")
    if isinstance(model.delete_policy, (SoftDelete, Tombstone)):
        columns.add(model.delete_policy.column)
    return frozenset(columns - {""})


def _columns(old: Model, new: Model) -> Iterator[DeclaredChange]:
    """Declared columns that came, went, moved or have another type."""
    before = {column.name: column.dtype for column in old.schema}
    after = {column.name: column.dtype for column in new.schema}
    gone = frozenset(before.keys() - after.keys())
    if gone:
        yield DeclaredChange(f"drops {_listed(gone)}", columns=gone)
    retyped = frozenset(name for name in before if after.get(name, before[name]) != before[name])
    if retyped:
        rows = bool(retyped & identifying(new))
        why = f"declares another type for {_listed(retyped)}"
        yield DeclaredChange(why, rows=rows, columns=None if rows else retyped)
    kept = [name for name in after if name in before]
    if kept != [name for name in before if name in after]:
        yield DeclaredChange("declares its columns in another order", columns=frozenset(kept))
    fresh = frozenset(after.keys() - before.keys())
    if fresh:
        yield _fresh(old, new, fresh)


def _fresh(old: Model, new: Model, columns: frozenset[str]) -> DeclaredChange:
    """Columns that are new: additive, unless a `*` that brings them decides on rows as well."""
    beside = _decided_by_star(old.logic, new, columns)
    if beside:
        return DeclaredChange(beside, rows=True, columns=None)
    return DeclaredChange(f"adds {_listed(columns)}", columns=columns, additive=True)


def _decided_by_star(old: Query, new: Model, columns: frozenset[str]) -> str:
    """Say what new columns may do besides being there, if the edit of the query is not what adds them."""
    if not isinstance(old, SqlQuery) or not isinstance(new.logic, SqlQuery):
        return ""
    edit = sql_change(old, new.logic)
    brought = frozenset(name.lower() for name in columns) - edit.added
    if edit.rows:
        return ""
    effect = sql_effect(new.logic, {up.name: SqlEdit(added=brought) for up in new.reads})
    if effect.is_breaking:
        return "; ".join(effect.why)
    return "" if brought <= effect.added else f"nothing that is known gives {_listed(columns)}"


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names))


def _words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\w+", text.casefold()))
