"""Audit results as the state keeps them, of failed batches too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.models.audit_result import AuditResult
from backfill_assets.state.cells import bounds, cell_of
from backfill_assets.state.rows import insert_all, read_as, values_of
from backfill_assets.state.tables import AUDIT_RESULTS, BATCHES

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


def audit_results(
    connection: sa.Connection, model: str | None, batch_id: str | None
) -> list[AuditRow]:
    """Read results, the latest first."""
    table = AUDIT_RESULTS.c
    wanted = sa.select(AUDIT_RESULTS).order_by(
        table.audited_at.desc(), table.batch_id, table.attempt.desc(), table.audit
    )
    if model is not None:
        wanted = wanted.where(table.model == model)
    if batch_id is not None:
        wanted = wanted.where(table.batch_id == batch_id)
    return [_audit(row) for row in connection.execute(wanted)]


def audits_of_plan(connection: sa.Connection, plan_id: str) -> list[AuditRow]:
    """Read the results of a plan's batches, attempt by attempt, the earliest first."""
    table = AUDIT_RESULTS.c
    own = sa.select(BATCHES.c.batch_id).where(BATCHES.c.plan_id == plan_id)
    wanted = sa.select(AUDIT_RESULTS).where(table.batch_id.in_(own))
    in_order = wanted.order_by(table.audited_at, table.batch_id, table.attempt, table.audit)
    return [_audit(row) for row in connection.execute(in_order)]


def _audit(row: sa.Row[Any]) -> AuditRow:
    return AuditRow(read_as(Audited, row, interval=cell_of(row)), read_as(AuditResult, row))
