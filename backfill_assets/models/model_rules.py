"""The rules that a model's declaration obeys, and one error class per broken rule."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.grid import Unit
from backfill_assets.models.audit import (
    ROWS,
    Audit,
    Complete,
    Fresh,
    KnownRows,
    NearNeighbours,
    NearPublished,
    NumberWithin,
    PythonAudit,
    Reconciles,
    References,
    RowCountWithin,
    RowRule,
    SqlAudit,
    Unique,
)
from backfill_assets.models.column import AUDIT_COLUMNS, CELL_COLUMN, canonical_type
from backfill_assets.models.declared_values import require_distinct
from backfill_assets.models.kind import Full, IncrementalByUniqueKey, SoftDelete, Tombstone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from backfill_assets.models.model import Model

GRAIN_AUDIT = "unique_grain"
OWNER = re.compile(r"team:[\w-]+|[^@\s]+@[^@\s]+")


def require_declarations(model: Model) -> None:
    """Refuse a model that lacks a required declaration.

    Raises:
        DeclarationError: the grain, the key, the owner or the columns are not declared.
    """
    reasons = {
        "grain": (
            model.grain.strip(),
            "without it a duplicate can't be distinguished from a second fact",
        ),
        "unique_key": (
            model.unique_key,
            "without it reruns can't be distinguished from duplicates",
        ),
        "owner": (model.owner.strip(), "without one no person can accept a changed history"),
        "columns": (model.columns, "without a schema a drifted input is published unnoticed"),
    }
    for missing, (value, why) in reasons.items():
        if not value:
            raise DeclarationError(found=f"model '{model.name}' declares no {missing}: {why}")


def require_consistency(model: Model) -> None:
    """Refuse a model whose (settled) declarations contradict each other.

    Raises:
        DeclarationError: one names a column that the model does not have.
        DeclarationError: its cadence has no start.
        DeclarationError: two repeat or contradict each other, or one is out of range.
    """
    _require_distinct(model)
    columns = [column.name for column in model.schema]
    for role, column in _named_columns(model):
        if column not in columns:
            raise DeclarationError(
                found=f"model '{model.name}' names '{column}' as its {role}, but has the columns "
                f"{', '.join(columns)}",
                do="declare the column or correct the name",
            )
    _require_grid(model)
    for problem, expected in _out_of_range(model):
        raise DeclarationError(found=f"model '{model.name}': found {problem}", expected=expected)


def _require_distinct(model: Model) -> None:
    columns = [column.name.lower() for column in model.schema]
    for what, names in (
        ("columns", columns),
        ("unique key columns", model.key),
        ("upstreams", [upstream.name for upstream in model.reads]),
        ("audits", [GRAIN_AUDIT, *(audit.name for audit in model.audits)]),
    ):
        expected = "each name once (the key's own audit is named unique_grain)"
        require_distinct(f"model '{model.name}'", what, names, expected)
    ours = sorted({CELL_COLUMN, *AUDIT_COLUMNS} & {*columns})
    if ours:
        raise DeclarationError(
            found=f"model '{model.name}': found a column named {', '.join(ours)}, which every table "
            "has of its own",
            expected="another name",
        )


def _require_grid(model: Model) -> None:
    if isinstance(model.kind, Full) != (model.cadence.unit is Unit.WHOLE):
        raise DeclarationError(
            found=f"model '{model.name}': found {type(model.kind).__name__} on the cadence "
            f"{model.cadence.unit.name}",
            expected="Full models on Whole(), and only those",
        )
    if model.cadence.unit is not Unit.WHOLE and model.cadence.start is None:
        raise DeclarationError(
            found=f"model '{model.name}' declares no start: without one its history has no first "
            "cell",
            do="give its cadence a start",
        )


def _out_of_range(model: Model) -> Iterator[tuple[str, str]]:
    """Pairs of the value found and the value expected."""
    if not OWNER.fullmatch(model.owner):
        yield f"owner '{model.owner}'", "'team:name' or an e-mail address"
    for what, number, least in (
        ("batch_size", 1 if model.batch_size is None else model.batch_size, 1),
        ("batch_concurrency", model.batch_concurrency, 1),
        ("late_window", model.late_window, 0),
    ):
        if number < least:
            yield f"{what}={number}", f"at least {least}"
    if model.batch_timeout is not None and not 0 < model.batch_timeout < float("inf"):
        yield f"batch_timeout={model.batch_timeout}", "a number of seconds above 0, or None"
    yield from _tolerant_keys(model)
    yield from _key_ranges(model)
    for audit in model.audits:
        if not 0 <= _slack(audit) <= 1:
            yield f"audit '{audit.name}' with {_slack(audit)}", "a fraction from 0 to 1"
    yield from _without_an_end(model)


def _without_an_end(model: Model) -> Iterator[tuple[str, str]]:
    """Find audits of freshness that have no end of a cell, or no instant, to measure."""
    types = {column.name: canonical_type(column.dtype) for column in model.schema}
    for audit in model.audits:
        if isinstance(audit, Fresh) and model.cadence.unit is Unit.WHOLE:
            yield f"audit '{audit.name}' of a table without cells", "it on a model whose cells end"
        elif isinstance(audit, Fresh) and types[audit.column] != "timestamp":
            yield f"audit '{audit.name}' on the type {types[audit.column]}", "it on a timestamp"


def _tolerant_keys(model: Model) -> Iterator[tuple[str, str]]:
    for column in model.schema:
        if column.tolerance is not None and column.name in model.key:
            yield f"a tolerance on '{column.name}'", "none on a column that identifies rows"


def _key_ranges(model: Model) -> Iterator[tuple[str, str]]:
    ranges = model.key_ranges
    if ranges is None:
        return
    if not isinstance(model.kind, Full):
        yield (
            "key_ranges on a model with cells",
            "them on a Full() model: others are built cell by cell",
        )
    if model.volatile:
        yield "key_ranges on a volatile model", "a query that gives the same rows each time it runs"
    if ranges.column not in model.key:
        yield f"key_ranges of '{ranges.column}'", "a column of the unique key"
    types = {column.name: column.dtype for column in model.schema}
    if not ranges.are_of(types[ranges.column]):
        yield (
            f"key_ranges of '{ranges.column}', a {types[ranges.column]}, from {ranges.starts[0]!r} on",
            "whole numbers where the column holds whole numbers, and texts where it is a string",
        )


def _slack(audit: Audit) -> float:
    match audit:
        case RowRule() | References():
            return audit.allowed
        case Reconciles():
            return audit.tolerance
        case _:
            return 0.0  # rows may double, or more: their fraction has no upper end


def _named_columns(model: Model) -> Iterator[tuple[str, str]]:
    yield from (("unique key", column) for column in model.key)
    if not isinstance(model.kind, Full):
        yield "time column", model.kind.time_column
    if isinstance(model.kind, IncrementalByUniqueKey) and model.kind.latest_by is not None:
        yield "ordering column (latest_by)", model.kind.latest_by
    if isinstance(model.delete_policy, (SoftDelete, Tombstone)):
        yield "delete marker", model.delete_policy.column
    if model.key_ranges is not None:
        yield "column of key ranges", model.key_ranges.column
    yield from ((f"{role} time", column) for role, column in model.times.named())
    for audit in model.audits:
        for column in _audited(model, audit):
            yield f"column of audit '{audit.name}'", column


def _audited(  # noqa: PLR0911 - one case for each audit
    model: Model, audit: Audit
) -> Iterable[str]:
    match audit:
        case Unique():
            return audit.columns
        case Reconciles() if audit.column == ROWS:
            return ()
        case References() | Reconciles() | Fresh():
            return (audit.column,)
        case RowRule():
            return _columns_of_predicate(model, audit)
        case Complete() | KnownRows():
            return audit.columns
        case NumberWithin() | NearPublished() | NearNeighbours():
            return (audit.number.column,) if audit.number.column else ()
        case RowCountWithin() | SqlAudit() | PythonAudit():
            return ()


def _columns_of_predicate(model: Model, rule: RowRule) -> Sequence[str]:
    """Name the columns of a predicate as the model does, for Spark takes no notice of case."""
    try:
        statements = sqlglot.parse(rule.predicate, dialect="spark")
    except SqlglotError as error:
        raise _not_a_predicate(model, rule) from error
    statement = statements[0] if len(statements) == 1 else None
    if not isinstance(statement, exp.Condition) or any(node.comments for node in statement.walk()):
        raise _not_a_predicate(model, rule)
    ours = {column.name.lower(): column.name for column in model.schema}
    names = [column.parts[0].name for column in statement.find_all(exp.Column)]
    return [ours.get(name.lower(), name) for name in names]


def _not_a_predicate(model: Model, rule: RowRule) -> DeclarationError:
    return DeclarationError(
        found=f"model '{model.name}': found audit '{rule.name}' with the predicate "
        f"`{rule.predicate}`",
        expected="one condition of Spark SQL over a row, without comments",
    )
