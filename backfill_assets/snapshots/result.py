"""Registered results: a signed-off report, or an evaluation, and the published cells that it rests on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.intervals.interval_set import IntervalSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a result has used of one model.

    Attributes:
        name: of the result.
        environment: whose publication it used.
        model: which model.
        plan_id: the built plan that it was computed on; empty: what was published.
        cells: which cells.
        version: the table that it read.
        delta_version: at which delta_version.
        rerun: whether it has to be computed again before a plan that invalidates it is promoted.
        who: registered it.
        at: when (UTC).
        reason: what it found, or who signed it off, in words.
    """

    name: str
    environment: str
    model: str
    plan_id: str
    cells: IntervalSet
    version: str
    delta_version: int
    rerun: bool
    who: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Invalidated:
    """A registered result that a plan invalidates.

    Attributes:
        result: as it was registered.
        cells: those that it has used, and that change.
        again: whether it was computed again on the plan as it is built.
    """

    result: Result
    cells: IntervalSet
    again: bool = False
