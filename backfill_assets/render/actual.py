"""Sum up the time and size that a plan really took, beside its estimate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.text import counted
from backfill_assets.render.plan_words import bytes_text, parts_text, seconds_text
from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.stored_plan import PlanEvent
    from backfill_assets.snapshots.timing import Timing
    from backfill_assets.state.batch_rows import BatchRow


@dataclass(frozen=True, slots=True)
class Actual:
    """The time and size that a plan took, over all its applies and its promotion.

    Attributes:
        seconds: of all their steps, Spark's start among them, those of two at the same time once; None where
            none was recorded.
        batch_seconds: time of its committed batches, one after the other.
        batches: committed.
        failed: attempts that failed.
        rows: in its committed cells.
        bytes_written: by its commits.
    """

    seconds: float | None
    batch_seconds: float
    batches: int
    failed: int
    rows: int
    bytes_written: int


def actual_of(
    events: Iterable[PlanEvent],
    batches: Iterable[BatchRow],
    timings: Iterable[Timing] = (),
) -> Actual:
    """Sum up the time and size of a plan's batches and applies.

    Args:
        events: what happened to the plan.
        batches: every batch that served it.
        timings: the times of its operations, step by step; an earlier release stored none.
    """
    own = [*batches]
    done = [row for row in own if row.finished_at is not None and row.delta_version is not None]
    return Actual(
        seconds=_taken(events, list(timings), own),
        batch_seconds=sum(_seconds(row) for row in done),
        batches=len(done),
        failed=sum(row.has_failed for row in own),
        rows=sum(row.rows or 0 for row in done),
        bytes_written=sum(row.bytes_written or 0 for row in done),
    )


def _taken(
    events: Iterable[PlanEvent], timings: Sequence[Timing], batches: Iterable[BatchRow]
) -> float | None:
    """Give the time in which operations were at work; if no operation is stored, the time of building alone."""
    if timings:
        return _covered(timings, batches)
    durations = [
        event.detail.get("seconds") for event in events if event.event != PlanEventKind.MEASURED
    ]
    walls = [float(seconds) for seconds in durations if isinstance(seconds, int | float)]
    return sum(walls) if walls else None


def _covered(timings: Sequence[Timing], batches: Iterable[BatchRow]) -> float:
    """Add up operations, and batches of those that were interrupted; time in which several were at work counts once."""
    taken = [(timing.at, sum(timing.steps.values())) for timing in timings]
    spans = [(at.timestamp() - seconds, at.timestamp()) for at, seconds in taken if at]
    if len(spans) == len(taken):  # else it is not known which operations the batches were part of
        spans += [
            (row.started_at.timestamp(), row.finished_at.timestamp())
            for row in batches
            if row.finished_at
        ]
    covered, until = sum(seconds for at, seconds in taken if at is None), float("-inf")
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, until))
        until = max(until, end)
    return covered


def _seconds(row: BatchRow) -> float:
    return (row.finished_at - row.started_at).total_seconds() if row.finished_at else 0.0


def actual_text(plan: Plan, actual: Actual) -> str:
    """Write the time that a plan took, and the expected one."""
    wall = actual.batch_seconds if actual.seconds is None else actual.seconds
    took = (
        f"took {seconds_text(wall)}, {counted(actual.batches, 'batch', 'batches')}, "
        f"{counted(actual.rows, 'row')}, {bytes_text(actual.bytes_written)} written"
    )
    if plan.estimate is None:
        return took
    middle, most = plan.estimate.seconds
    estimated = f"{seconds_text(middle)} (P50), {seconds_text(most)} (P90)"
    return f"{took}; estimated {estimated}{parts_text(plan.estimate)}"
