"""Aftercare: what is watched for a stated time after a promotion, and what a look at it finds.

A watch is asked for before the promotion, and counts from it. It is over with the first look at or after its end,
or when the plan is taken back. All of it stands in the plan's history.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import RequestError
from backfill_assets.intervals.durations import read_duration
from backfill_assets.intervals.required import required
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.robust_band import robust_band
from backfill_assets.planning.review.touched import ChangedModel, touched
from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.consumer import Consumer
    from backfill_assets.snapshots.stored_plan import PlanEvent


NOT_JUDGED = "usage: this project sees no queries of readers"
"""What a look can't judge, and why."""

_LOOKS = 24
_SHORTEST = timedelta(minutes=1)
_NEIGHBOURS, _BAND = 7, 6.0


@dataclass(frozen=True, slots=True)
class Watch:
    """The watch over a promotion.

    Attributes:
        since: when the plan was promoted.
        until: how long it is watched: no longer than until the plan was taken back.
        looks: the events of its looks, the earliest first.
        is_over: whether the plan was taken back.
    """

    since: datetime
    until: datetime
    looks: tuple[PlanEvent, ...] = ()
    is_over: bool = False

    @property
    def ended(self) -> bool:
        """Whether its last look has been made, or the plan was taken back."""
        return self.is_over or any(look.event == PlanEventKind.WATCH_ENDED for look in self.looks)

    @property
    def found(self) -> tuple[str, ...]:
        """What the latest look has found; empty where all was well, and before the first one."""
        return tuple(self.looks[-1].detail["found"]) if self.looks else ()

    @property
    def every(self) -> timedelta:
        """How far the looks of the sensor are apart."""
        return max((self.until - self.since) / _LOOKS, _SHORTEST)

    def is_due(self, now: datetime) -> bool:
        """Whether the sensor is to look now: a while after the last look, and once at the end."""
        if self.ended:
            return False
        last = self.looks[-1].at if self.looks else self.since
        return now >= min(last + self.every, max(self.until, last))


def watch_of(events: Iterable[PlanEvent]) -> Watch | None:
    """Read the watch from a plan's history; None where nothing of it is published, or none was asked for.

    A watch that is asked for again replaces the earlier one; the look that had ended it does not count.
    """
    duration = since = over = None
    looks: list[PlanEvent] = []
    for event in events:
        if event.event == PlanEventKind.WATCH:
            duration = timedelta(seconds=event.detail["seconds"])
            looks = [look for look in looks if look.event != PlanEventKind.WATCH_ENDED]
        elif event.event == PlanEventKind.PROMOTED:
            since = event.at
        elif event.event == PlanEventKind.DROPPED:
            since = None
        elif event.event in {PlanEventKind.ROLLED_BACK, PlanEventKind.UNDONE}:
            over = event.at
        elif event.event in {PlanEventKind.LOOKED, PlanEventKind.WATCH_ENDED}:
            looks.append(event)
    if duration is None or since is None:
        return None
    until = since + duration
    return Watch(since, min(until, over or until), tuple(looks), over is not None)


def read_watch(text: str) -> timedelta:
    """Read a time such as ``24h``, ``90m`` or ``2d``.

    Raises:
        RequestError: it is none.
    """
    length = read_duration(text)
    if length is None:
        raise RequestError(
            found=f"--watch {text!r} is no time",
            expected="a number of minutes, hours or days, such as 90m, 24h or 2d",
            do="Write one of them; nothing was published",
        )
    return length


@dataclass(frozen=True, slots=True)
class Watched:
    """What a look reads of one model.

    Attributes:
        model: its name.
        cadence: its cells.
        planned: the cells that the plan published.
        gaps: the cells that are required and not ready now.
        rows: how many rows each ready cell holds.
        new: the ready cells that were written since the promotion, beside the plan.
        failed: the blocking audits that have failed since, with the cells that need work still.
    """

    model: str
    cadence: Cadence
    planned: IntervalSet
    gaps: IntervalSet
    rows: Mapping[Interval, int]
    new: IntervalSet
    failed: tuple[tuple[str, IntervalSet], ...] = ()


def findings(
    watched: Sequence[Watched], consumers: Iterable[Consumer], since: datetime, now: datetime
) -> tuple[str, ...]:
    """Say what is wrong, a sentence each; empty where all is well.

    Args:
        watched: the models of the plan that are still declared.
        consumers: those that are declared.
        since: when the plan was promoted.
        now: the instant of the look.
    """
    lacking = {of.model: cells for of in watched if (cells := _lacking(of, since, now))}
    lines = [line for of in watched for line in _of_model(of, lacking.get(of.model))]
    cadences = {of.model: of.cadence for of in watched}
    changed = {model: ChangedModel(cells) for model, cells in lacking.items()}
    for reader in touched(consumers, changed, cadences, now):
        cells = ranges_text(cadences[reader.model], reader.cells)
        lines.append(f"{reader.consumer} ({reader.owner}) reads {reader.model} {cells}: not there")
    return tuple(lines)


def _lacking(of: Watched, since: datetime, now: datetime) -> IntervalSet:
    """Give the cells that lack for longer than expected: a cell is to be filled before the next one is due."""
    before = of.cadence.tick(of.cadence.tick(now) - timedelta(microseconds=1))
    due = required(of.cadence, now=max(before, since))
    then = required(of.cadence, now=since)
    return of.gaps & due & (of.planned | (due - then))


def _of_model(of: Watched, lacking: IntervalSet | None) -> Iterator[str]:
    if lacking:
        cells = ranges_text(of.cadence, lacking)
        yield f"{of.model}: {cells} not filled, although the next cell is due"
    for cell, low, high in _outside(of):
        yield (
            f"{of.model}: rows = {of.rows[cell]:,} in {of.cadence.key(cell)}, "
            f"outside {float(low):,.0f}..{float(high):,.0f} of the cells around"
        )
    for audit, cells in of.failed:
        yield f"{of.model}: audit {audit} failed on {ranges_text(of.cadence, cells)}"


def _outside(of: Watched) -> Iterator[tuple[Interval, Fraction, Fraction]]:
    """Find new cells whose number of rows lies outside of the robust band over the cells around."""
    cells = sorted(of.rows)
    new = {*of.cadence.cells(of.new)}
    for place, cell in enumerate(cells):
        if cell not in new:
            continue
        near = (*cells[max(0, place - _NEIGHBOURS) : place], *cells[place + 1 :][:_NEIGHBOURS])
        band = robust_band([Fraction(of.rows[each]) for each in near], _BAND)
        if band and not band[0] <= of.rows[cell] <= band[1]:
            yield cell, *band


def watch_json(watch: Watch | None) -> dict[str, Any] | None:
    """Give a watch as plain values."""
    if watch is None:
        return None
    return {
        "since": watch.since.isoformat(),
        "until": watch.until.isoformat(),
        "ended": watch.ended,
        "looks": [
            {"at": look.at.isoformat(), "found": list(look.detail["found"])} for look in watch.looks
        ],
        "found": list(watch.found),
        "not_judged": [NOT_JUDGED],
    }
