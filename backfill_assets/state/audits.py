"""Audit results as the state keeps them, of failed batches too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.models.audit_result import AuditResult
from backfill_assets.state.cells import bounds, cell_of
from backfill_assets.state.rows import insert_all, read_as, values_of
from backfill_assets.state.tables import AUDIT_RESULTS

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.intervals.interval import Interval


@dataclass(frozen=True, slots=True)
class Audited:
    """What was audited, and when.

    Attributes:
        batch_id: the batch.
        attempt: which try of it.
        model: what it builds.
        interval: its cells.
        audited_at: when the batch ended.
    """

    batch_id: str
    attempt: int
    model: str
    interval: Interval
    audited_at: datetime


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One audit's result, and of what."""

    audited: Audited
    result: AuditResult


def save_audits(
    connection: sa.Connection, audited: Audited, results: tuple[AuditResult, ...]
) -> None:
    """Keep the results of one attempt of a batch, in place of any before."""
    before = sa.delete(AUDIT_RESULTS).where(
        AUDIT_RESULTS.c.batch_id == audited.batch_id, AUDIT_RESULTS.c.attempt == audited.attempt
    )
    connection.execute(before)
    of = {**values_of(audited, without="interval"), **bounds(audited.interval)}
    insert_all(connection, AUDIT_RESULTS, [{**of, **values_of(each)} for each in results])


def audit_of(row: sa.Row[Any]) -> AuditRow:
    """Read an audit's result, and of what, from its row."""
    return AuditRow(read_as(Audited, row, interval=cell_of(row)), read_as(AuditResult, row))
