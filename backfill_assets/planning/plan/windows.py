"""Cut the requested range of a plan to each model's own zone and cells."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.instants import end_at, start_at
from backfill_assets.intervals.interval import Interval, epoch_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.parse_range import OutsideLifeError, parse_range
from backfill_assets.intervals.required import required
from backfill_assets.intervals.text import ranges_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Set as AbstractSet
    from datetime import datetime

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.planned_graph import PlannedGraph
    from backfill_assets.planning.plan.request import PlanRequest
    from backfill_assets.snapshots.state_view import StateView


def in_the_future(what: str, when: str, now: datetime) -> RequestError:
    """Refuse a date that must have come and lies in the future."""
    return RequestError(
        found=f"the {what} {when} lies in the future (now is {now:%Y-%m-%dT%H:%MZ})",
        do="give a date that is not in the future",
    )


@dataclass(frozen=True, slots=True)
class Window:
    """The cells that the request asks of one model.

    Attributes:
        cells: its required cells inside the requested range.
        life: its required cells, whatever the range; of a request that is bounded by its end, none
            that reaches past that.
        beyond: the required cells that such a request leaves out.
        notes: what was rounded, clipped or left out, in words.
        missed: whether the range lies wholly outside of its life.
    """

    cells: IntervalSet
    life: IntervalSet
    beyond: IntervalSet = field(default_factory=IntervalSet.empty)
    notes: tuple[str, ...] = ()
    missed: bool = False


def window_of(
    request: PlanRequest, cadence: Cadence, now: datetime, published: IntervalSet
) -> Window:
    """Cut the requested range to a model's cells and life.

    Args:
        request: what was asked for.
        cadence: the model's cells and life.
        now: the instant that history ends at (UTC).
        published: the cells that the environment reads.

    Raises:
        OutsideLifeError: the range lies outside of the model's life.
        ReversedRangeError: the range ends where it starts, or before.
        InstantFormatError: a bound is neither a date nor an instant.
        RequestError: the range starts in the future.
    """
    life = _life(request, cadence, now, published)
    if cadence.unit is Unit.WHOLE:
        ranged = request.start is not None or request.end is not None
        notes = ("one cell, whatever the range",) if ranged else ()
        return Window(life, life, notes=notes)
    return _bounded(request, cadence, _ranged(request, cadence, life, now))


def _life(
    request: PlanRequest, cadence: Cadence, now: datetime, published: IntervalSet
) -> IntervalSet:
    return required(cadence, now=now, ignore_cron=request.ignore_cron, ready=published)


def _bounded(request: PlanRequest, cadence: Cadence, window: Window) -> Window:
    """Leave out every cell that reaches past a strict end."""
    end = _strict_end(request, cadence)
    if end is None or not window.life:
        return window
    life = window.life.within(window.life.boundaries[0], epoch_of(cadence.floor(end)))
    return replace(window, cells=window.cells & life, life=life, beyond=window.life - life)


def _without(kept: IntervalSet, window: Window) -> Window:
    return replace(window, cells=window.cells - kept, life=window.life - kept) if kept else window


def _strict_end(request: PlanRequest, cadence: Cadence) -> datetime | None:
    """Give the instant that no cell may reach past: the requested end, else that of the restatement."""
    if not request.end_bounded:
        return None
    if request.end is not None:
        return end_at(request.end, cadence.tz)
    ends = [
        end_at(restatement.end, cadence.tz)
        for restatement in request.restate
        if restatement.end is not None
    ]
    return max(ends) if ends and len(ends) == len(request.restate) else None


def _ranged(request: PlanRequest, cadence: Cadence, life: IntervalSet, now: datetime) -> Window:
    """Cut the requested range to a life."""
    if request.start is None and request.end is None:
        return Window(life, life)
    check_start(request.start, cadence, now)
    due = cadence.floor(now) if request.ignore_cron else cadence.due(now)
    requested = parse_range(request.start, request.end, cadence, due=due)
    left_out = _left_out(request, cadence, requested.asked, life)
    text = left_out or requested.note  # a strict end is not rounded outward
    cells = life & cadence.snap_in(requested.interval)
    return Window(cells, life, notes=(text,) if text else ())


def check_start(start: str | None, cadence: Cadence, now: datetime) -> None:
    """Refuse a start that has not come.

    Raises:
        RequestError: it lies after now.
    """
    if start is not None and start_at(start, cadence.tz) > now:
        raise in_the_future("start", start, now)


def _left_out(
    request: PlanRequest, cadence: Cadence, interval: Interval, life: IntervalSet
) -> str | None:
    """Name the cell that the requested end would cut."""
    if not request.end_bounded or cadence.floor(interval.end) == interval.end:
        return None
    cut = life.within(epoch_of(cadence.floor(interval.end)), epoch_of(interval.end))
    if not cut:
        return None
    named = ranges_text(cadence, cut)
    return f"left out: {named}, which reaches past the requested end"


def windows_of(planned: PlannedGraph) -> dict[str, Window]:
    """Cut the requested range to every model; some may lie outside of it, but not all.

    Cells that a cutoff keeps under the old definition are left out until the cutoff is lifted.

    Raises:
        OutsideLifeError: the range lies outside the life of every chosen model.
    """
    request = planned.request
    models = {name: planned.models[name] for name in planned.graph.order}
    windows = cut_windows(request, models, planned.chosen, planned.published, planned.now)
    for name, model in models.items():
        if name not in request.lift_cutoffs:
            kept = planned.published.kept(model, windows[name].life)
            windows[name] = _without(kept, windows[name])
    return windows


def cut_windows(
    request: PlanRequest,
    models: Mapping[str, Model],
    chosen: AbstractSet[str],
    view: StateView,
    now: datetime,
) -> dict[str, Window]:
    """Cut the requested range to models; one whose life it misses has no cell in it, and says so.

    Args:
        request: whose range it is.
        models: by name.
        chosen: those that the request is about.
        view: what the environment publishes.
        now: the instant that history ends at (UTC).

    Raises:
        OutsideLifeError: the range lies outside the life of every chosen model that a range can cut.
        RequestError: the range starts in the future.
    """
    windows: dict[str, Window] = {}
    outside: dict[str, OutsideLifeError] = {}
    for name, model in models.items():
        published = view.ready(name)
        try:
            windows[name] = window_of(request, model.cadence, now, published)
        except OutsideLifeError as error:
            outside[name] = error
            life = _life(request, model.cadence, now, published)
            window = Window(IntervalSet.empty(), life, notes=(f"left out: {error}",), missed=True)
            windows[name] = _bounded(request, model.cadence, window)
    cut = {name for name in models.keys() & chosen if models[name].cadence.unit is not Unit.WHOLE}
    if cut and cut <= outside.keys():
        raise next(iter(outside.values()))
    return windows
