"""What an audit demands, and what a failure of it does, in words."""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from backfill_assets.intervals.durations import duration_text
from backfill_assets.intervals.text import counted
from backfill_assets.models.audit import (
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
    Severity,
    SqlAudit,
    Unique,
    total_words,
)


def audit_words(audit: Audit) -> str:
    """Say in one sentence what an audit demands, and what a failure does."""
    blocks = audit.severity is Severity.BLOCKING
    does = "keeps the batch from being committed" if blocks else "only warns"
    return f"{_demand(audit)} A failure {does}."


def _demand(audit: Audit) -> str:  # noqa: C901, PLR0911, PLR0912 - one case for each audit
    match audit:
        case RowRule():
            return f"Every row obeys {audit.predicate}{_but(audit.allowed)}."
        case Unique():
            return f"No two rows of the table share {', '.join(audit.columns)}."
        case RowCountWithin():
            return f"A rebuilt cell keeps its number of rows within {audit.fraction:.3%}."
        case References():
            target = f"{audit.upstream}.{audit.to_column}"
            return f"Every value of {audit.column} exists in {target}{_but(audit.allowed)}."
        case Reconciles():
            totals = f"{total_words(audit.column)} equals {total_words(audit.to_column)}"
            within = f", within {audit.tolerance:.3%}" if audit.tolerance else ""
            return f"Over the same cells {totals} of {audit.upstream}{within}."
        case NumberWithin():
            return f"In each cell, {audit.number.words} lies in {band_words(audit)}."
        case Fresh():
            return f"In each cell, the {audit.number.words} lies {fresh_words(audit)}."
        case NearPublished():
            where = "all cells of a batch together" if audit.together else "each cell"
            return (
                f"In {where}, {audit.number.words} differs from what is published by at most "
                f"{slack_words(audit)}."
            )
        case NearNeighbours():
            return (
                f"In each cell, {audit.number.words} lies within {audit.band:g} deviations of the "
                f"{counted(audit.neighbours, 'cell')} on either side."
            )
        case Complete():
            expected = (
                f"the {counted(len(audit.entities), 'declared value')}"
                if audit.entities
                else f"each value of the {counted(audit.seen, 'cell')} before"
            )
            columns = ", ".join(audit.columns)
            but = f", but for at most {audit.allowed:,} of them" if audit.allowed else ""
            return f"Each cell has rows for {expected} of {columns}{but}."
        case KnownRows():
            return f"{len(audit.rows)} known rows are there, with their values."
        case SqlAudit():
            return f"This query gives no row: {' '.join(audit.sql.split())}."
        case PythonAudit():
            return f"The function {audit.query.name} gives no row."
        case _:
            assert_never(audit)


def band_words(audit: NumberWithin) -> str:
    """Write the range of a number."""
    low = "-inf" if audit.low is None else f"{audit.low:,g}"
    return f"[{low}, {'inf' if audit.high is None else f'{audit.high:,g}'}]"


def fresh_words(audit: Fresh) -> str:
    """Write how far the newest value may lie before the end of its cell."""
    return f"at most {duration_text(timedelta(seconds=audit.seconds))} before the end of the cell"


def slack_words(audit: NearPublished) -> str:
    """Write how far a number may be from the published one."""
    parts = [f"{audit.fraction:.3%}"] if audit.fraction or not audit.absolute else []
    return " or ".join([*parts, *([f"{audit.absolute:,g}"] if audit.absolute else [])])


def _but(allowed: float) -> str:
    return f", but for at most {allowed:.3%} of a cell's rows" if allowed else ""
