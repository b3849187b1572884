"""Audits of published data as the state keeps them: what each has found the last times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.models.audit_result import AuditResult
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import PUBLISHED_AUDITS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.state.database import Database

KEPT = 100
"""How many of the last audits of a model in an environment are kept."""


@dataclass(frozen=True, slots=True)
class AuditedPublication:
    """What was audited.

    Attributes:
        environment: whose published data.
        model: which.
        version: the table that was read.
        delta_version: its version.
        audited: the cells.
    """

    environment: str
    model: str
    version: str
    delta_version: int
    audited: IntervalSet


@dataclass(frozen=True, slots=True)
class PublishedAudit:
    """What one audit has found.

    Attributes:
        of: what was audited.
        audited_at: when, UTC.
        result: what was found.
    """

    of: AuditedPublication
    audited_at: datetime
    result: AuditResult


class PublishedAudits(Aggregate[D]):
    """The history of audits of published data. Each method is one transaction."""

    def keep(
        self: PublishedAudits[Database], of: AuditedPublication, results: Sequence[AuditResult]
    ) -> None:
        """Keep what audits have found just now; of a model's audits before, the last `KEPT` times stay."""
        now = self._clock()  # one time for all: they are told apart by it
        rows = [{**values_of(of), **values_of(each), "audited_at": now} for each in results]
        if not rows:
            return

        just_now = PUBLISHED_AUDITS.c.audited_at == now

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(PUBLISHED_AUDITS).where(*_own(of), just_now))
            connection.execute(sa.insert(PUBLISHED_AUDITS), rows)
            connection.execute(sa.delete(PUBLISHED_AUDITS).where(*_own(of), _before_the_last(of)))

        self._database.write(work)

    def history(self, environment: str, model: str) -> list[PublishedAudit]:
        """Read what the audits of a model have found, the last time first."""
        table = PUBLISHED_AUDITS.c
        query = sa.select(PUBLISHED_AUDITS).where(
            table.environment == environment, table.model == model
        )
        ordered = query.order_by(table.audited_at.desc(), table.audit)
        return [
            PublishedAudit(
                read_as(AuditedPublication, row), row.audited_at, read_as(AuditResult, row)
            )
            for row in self._rows(ordered)
        ]


def _own(of: AuditedPublication) -> tuple[sa.ColumnElement[bool], ...]:
    table = PUBLISHED_AUDITS.c
    return table.environment == of.environment, table.model == of.model


def _before_the_last(of: AuditedPublication) -> sa.ColumnElement[bool]:
    times = sa.select(PUBLISHED_AUDITS.c.audited_at).where(*_own(of)).distinct()
    last = times.order_by(PUBLISHED_AUDITS.c.audited_at.desc()).limit(KEPT).subquery()
    return PUBLISHED_AUDITS.c.audited_at.not_in(sa.select(last.c.audited_at))
