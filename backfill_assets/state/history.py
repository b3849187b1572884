"""What touched a model: plans, batches, pointer moves, in one line of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One thing that touched a model.

    Attributes:
        at: when.
        what: ``plan`` (made), ``batch``, or what moved the pointer: ``promote``, ``rollback``,
            ``undo``.
        environment: whose plan, batch or pointer.
        plan_id: the plan; None for a batch that served none.
        batch_id: the batch; None for what is none.
        version: the table that was written, or is read since; empty where there is none.
        cells: of the model.
        who: the person or run.
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


def history(connection: object, model: str, cells: IntervalSet | None) -> list[HistoryEntry]:
    raise NotImplementedError
