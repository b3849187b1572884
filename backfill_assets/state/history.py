"""The history of a model: its plans, batches and pointer moves, in order of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.state import batch_rows, moves
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.tables import PLANS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime, timedelta

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.snapshots.publication import PointerMove


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """A plan, a batch or a pointer move that touched a model.

    Attributes:
        at: when.
        what: ``plan`` (made), ``batch``, or what moved the pointer: ``promote``, ``rollback``,
            ``undo``.
        environment: whose plan, batch or pointer.
        plan_id: the plan; None for a batch that served none.
        batch_id: the batch; None for a plan or a move.
        version: the table that was written, or is read since; empty where there is none.
        cells: of the model.
        who: the person; of a batch whose person is not known, its run.
        why: the reason, in words.
        status: of the plan or batch now; ``done`` for a move.
    """

    at: datetime
    what: str
    environment: str
    plan_id: str | None
    batch_id: str | None
    version: str
    cells: IntervalSet
    who: str
    why: str
    status: str


class History(Aggregate[D]):
    """The history of models, and the pointer moves of environments. It is only read.

    Each method is one transaction.
    """

    def of_model(self, model: str, cells: IntervalSet | None = None) -> list[HistoryEntry]:
        """Read every plan, batch and pointer move that touched a model, the newest last.

        Args:
            model: which.
            cells: only what touched some of these.
        """

        def work(connection: sa.Connection) -> list[HistoryEntry]:
            return [
                *_plans(connection, model),
                *_batches(connection, model),
                *_moves(connection, model),
            ]

        entries = self._database.read(work)
        touching = (each for each in entries if cells is None or _touches(each, cells))
        return sorted(touching, key=lambda each: each.at)

    def moves_of(self, plan_id: str) -> list[PointerMove]:
        """Read the pointer moves of a plan: promotion, rollback, undo; the newest last."""
        return self._database.read(moves.moves_of, plan_id)

    def promoting_moves(self, plan_id: str) -> list[PointerMove]:
        """Read the pointer moves of a plan's promotion; none before it."""
        return [move for move in self.moves_of(plan_id) if move.kind is PublicationKind.PROMOTE]

    def moves_to_keep(self, promise: timedelta) -> list[PointerMove]:
        """Read the pointer moves that can be taken back, by what was promised or is now, the newest last."""
        return self._database.read(moves.moves_to_keep, self._clock(), promise)

    def moves_in(self, environment: str, after: int = 0) -> list[PointerMove]:
        """Read an environment's pointer moves after a number of the counter, the newest last."""
        return self._database.read(moves.moves_in, environment, after)


def _touches(entry: HistoryEntry, cells: IntervalSet) -> bool:
    """Whether it touched some of the cells; what removed a model touched every one."""
    removed = entry.batch_id is None and entry.what != "plan" and not entry.version
    return removed or bool(entry.cells & cells)


def _plans(connection: sa.Connection, model: str) -> Iterator[HistoryEntry]:
    at = PLANS.c  # without the content, which is most of a plan
    columns = (
        at.created_at,
        at.environment,
        at.plan_id,
        at.created_by,
        at.reason,
        at.status,
        at.cells,
    )
    for row in connection.execute(sa.select(*columns)):
        if model in row.cells:
            yield HistoryEntry(
                at=row.created_at,
                what="plan",
                environment=row.environment,
                plan_id=row.plan_id,
                batch_id=None,
                version="",
                cells=row.cells[model],
                who=row.created_by,
                why=row.reason,
                status=row.status.value,
            )


def _batches(connection: sa.Connection, model: str) -> Iterator[HistoryEntry]:
    for each in batch_rows.batches(connection, model, None):
        yield HistoryEntry(
            at=each.started_at,
            what="batch",
            environment=each.environment,
            plan_id=each.plan_id,
            batch_id=each.batch_id,
            version=each.version,
            cells=each.stretches,
            who=each.who or each.run_id,
            why=each.reason,
            status=each.status,
        )


def _moves(connection: sa.Connection, model: str) -> Iterator[HistoryEntry]:
    for each in moves.moves_of_model(connection, model):
        yield HistoryEntry(
            at=each.at,
            what=each.kind.value,
            environment=each.environment,
            plan_id=each.plan_id,
            batch_id=None,
            version="" if each.new is None else each.new.version,
            cells=each.cells,
            who=each.who,
            why=each.why,
            status="done",
        )
