"""Dual runs: two histories that are both filled, and compared each day, before one replaces the other.

Until the promotion the environment's own cells are authoritative, and readers see them alone; the plan's are
afterwards. All of it stands in the plan's history.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.snapshots.stored_plan import PlanEvent


_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class DualRun:
    """The days in which both histories are filled.

    Attributes:
        since: when the plan was built first (UTC).
        days: how long both are filled.
        compared: the events of its comparisons, the earliest first.
    """

    since: datetime
    days: int
    compared: tuple[PlanEvent, ...] = ()

    @property
    def until(self) -> datetime:
        """From when on the plan may be promoted (UTC)."""
        return self.since + self.days * _DAY

    def lasts(self, now: datetime) -> bool:
        """Whether both histories are still to be filled at an instant, so that the plan can't be promoted."""
        return now < self.until

    @property
    def refused(self) -> str:
        """What the latest comparison has found that stops the promotion; empty where all is explained."""
        return self.compared[-1].detail["refused"] if self.compared else ""

    def due(self, now: datetime) -> int | None:
        """Give the number of the day, from 1, whose comparison is due at an instant; None where none is.

        A day is compared once it is over. Of several that nothing was compared for, the last one counts.
        """
        day = min((now - self.since) // _DAY, self.days)
        over = self.since + day * _DAY
        last = self.compared[-1].at if self.compared else self.since
        return day if day > 0 and last < over else None


def dual_run_of(days: int, events: Iterable[PlanEvent]) -> DualRun | None:
    """Read a dual run from a plan's history; None where none was asked for, or nothing is built yet.

    Args:
        days: for how long it was asked.
        events: what has happened to the plan, the earliest first.
    """
    history = tuple(events)
    since = min((event.at for event in history if event.event == PlanEventKind.BUILT), default=None)
    if not days or since is None:
        return None
    return DualRun(
        since, days, tuple(event for event in history if event.event == PlanEventKind.COMPARED)
    )


def dual_run_json(dual: DualRun | None) -> dict[str, Any] | None:
    """Give a dual run as plain values."""
    if dual is None:
        return None
    return {
        "since": dual.since,
        "until": dual.until,
        "days": dual.days,
        "compared": [{"at": each.at, **each.detail} for each in dual.compared],
    }
