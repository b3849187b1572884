"""Records of evidence: which ends of plans have left a folder, and the chain of their manifests.

A plan owes evidence from the transaction that ends it, so a process that dies afterwards leaves a row that
the next one completes. Its place in the chain is given when the manifest is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.rows import next_of, read_as, values_of
from backfill_assets.state.tables import EVIDENCE

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.state.database import Database

_AT = EVIDENCE.c


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRecord:
    """The evidence of one end of a plan.

    Attributes:
        number: in the order in which ends came.
        plan_id: whose.
        ended: how: a status of plans, or ``stopped`` or ``refused`` for one that may go on.
        at: when it ended (UTC).
        why: it was refused, or is not built, in words; empty else.
        place: in the chain, from 1; None while it is owed.
        sha256: of the manifest; None while it is owed.
        manifest: its text; None while it is owed.
        noted: what it rests on beside the state's other tables; None while it is owed.
        written: whether its folder holds it.
    """

    number: int
    plan_id: str
    ended: str
    at: datetime
    why: str = ""
    place: int | None = None
    sha256: str | None = None
    manifest: str | None = None
    noted: str | None = None
    written: bool = False


class EvidenceRecords(Aggregate[D]):
    """The evidence of plans. Each method is one transaction."""

    def of_plan(self, plan_id: str) -> list[EvidenceRecord]:
        """Read the evidence of a plan, end by end, the latest last."""
        return self._read(_AT.plan_id == plan_id)

    def owed(self) -> list[EvidenceRecord]:
        """Read the evidence that no folder holds yet, in the order in which plans ended."""
        return self._read(_AT.written.is_(False))

    def last(self) -> EvidenceRecord | None:
        """Read the last of the chain; None while there is none."""
        newest = sa.select(sa.func.max(_AT.place)).scalar_subquery()
        records = self._read(_AT.place == newest)
        return records[0] if records else None

    def owe(
        self: EvidenceRecords[Database], plan_id: str, ended: str, why: str = ""
    ) -> EvidenceRecord:
        """Let a plan owe evidence: of an end that is no status, or as it stands now."""
        now = self._clock()
        return self._database.write(owe, plan_id, ended, now, why)

    def keep(
        self: EvidenceRecords[Database],
        record: EvidenceRecord,
        manifest: str,
        sha256: str,
        noted: str,
        *,
        place: int,
    ) -> bool:
        """Keep a manifest at the place in the chain that it names itself.

        False, and nothing is kept, where another process has kept one of this record, or one at this
        place, since the manifest was made: who makes it may have slept for longer than its lease.
        """
        made = {"place": place, "manifest": manifest, "sha256": sha256, "noted": noted}

        def work(connection: sa.Connection) -> bool:
            if next_of(connection, _AT.place) != place:
                return False
            unkept = _row_of(record).where(_AT.manifest.is_(None))
            return connection.execute(unkept.values(**made)).rowcount == 1

        return self._database.write(work)

    def mark_written(self: EvidenceRecords[Database], record: EvidenceRecord) -> bool:
        """Say that the folder of a plan holds its evidence; False where another process has said so."""

        def work(connection: sa.Connection) -> bool:
            unwritten = _row_of(record).where(_AT.written.is_(False))
            return connection.execute(unwritten.values(written=True)).rowcount == 1

        return self._database.write(work)

    def _read(self, condition: sa.ColumnElement[bool]) -> list[EvidenceRecord]:
        query = sa.select(EVIDENCE).where(condition).order_by(_AT.number)
        return [read_as(EvidenceRecord, row) for row in self._rows(query)]


def owe(
    connection: sa.Connection, plan_id: str, ended: str, now: datetime, why: str = ""
) -> EvidenceRecord:
    """Let a plan owe evidence of how it ended."""
    number = next_of(connection, _AT.number)
    record = EvidenceRecord(number=number, plan_id=plan_id, ended=ended, at=now, why=why)
    connection.execute(sa.insert(EVIDENCE).values(values_of(record)))
    return record


def _row_of(record: EvidenceRecord) -> sa.Update:
    return sa.update(EVIDENCE).where(_AT.number == record.number)
