"""Choose what the queue releases next, from the cells that the one rule has found.

Cells that can be built now are offered, per model and environment; a release takes one stretch of an
offer. Daily work goes first, but backfills and plans keep a share of the room, so neither starves.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval, epoch_of, instant_of
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from backfill_assets.models.model import Model
    from backfill_assets.planning.rule.needs_work import Work

_SPREAD = 2
"""How many times as many cells a release may span as it builds: what lies between is skipped."""
_STRETCHES = 20
"""How many separate stretches one release may have: they are named one by one in its tags."""
_AHEAD, _AFTER = 10, 0


class ReleaseKind(StrEnum):
    """The reason for a release.

    Attributes:
        DAILY: cells after the last ready one, or refreshed in the late window.
        BACKFILL: other cells that are missing.
        PLAN: cells of a queued plan.
        LATE: late data that one automatic plan brings in.
        FINISH: a queued plan of which the queue builds nothing more: all is built, or the rest has failed for good.
    """

    DAILY = "daily"
    BACKFILL = "backfill"
    PLAN = "plan"
    LATE = "late"
    FINISH = "finish"


FIRST = (ReleaseKind.FINISH, ReleaseKind.LATE, ReleaseKind.DAILY)
"""The kinds that go before backfills and plans, in this order."""


@dataclass(frozen=True, slots=True)
class Release:
    """One run that is asked for.

    Attributes:
        environment: whose cells.
        kind: why.
        model: whose; empty where it is about a whole plan, or about late data.
        cells: what it builds; consecutive but for cells that need nothing.
        plan_id: the queued plan that it serves.
        mark: distinguishes it from other releases of its kind and cells.
        inputs: what it would find in the sources; that alone makes no other release of it.
        attempt: 1 for the first.
        priority: in the run queue; the larger goes first.
    """

    environment: str
    kind: ReleaseKind
    model: str = ""
    cells: IntervalSet = field(default_factory=IntervalSet.empty)
    plan_id: str | None = None
    mark: str = ""
    inputs: str = ""
    attempt: int = 1
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Offer:
    """What could be released of one model now, for one reason; or of a plan, or of late data.

    Attributes:
        environment: whose cells.
        kind: why.
        model: whose; None where no model is meant.
        cells: all of them.
        plan_id: the queued plan.
        mark: distinguishes it from other offers of its kind and cells.
        inputs: what its run would find in the sources.
        size: how many cells of it go in one batch; None for any number of consecutive ones.
    """

    environment: str
    kind: ReleaseKind
    model: Model | None = None
    cells: IntervalSet = field(default_factory=IntervalSet.empty)
    plan_id: str | None = None
    mark: str = ""
    inputs: str = ""
    size: int | None = None

    @property
    def name(self) -> str:
        """The model's name; empty for none."""
        return self.model.name if self.model else ""

    @property
    def whose(self) -> tuple[str, str | None]:
        """The key by which places are shared: an environment's backfill, or one plan."""
        return self.environment, self.plan_id


@dataclass(frozen=True, slots=True)
class Room:
    """How much may be under way.

    Attributes:
        places: how many releases may run or wait in the queue at once.
        share: how many of them backfills and plans get at least, while they have work.
        batches: how many batches one release carries.
        under_way: releases that run or wait.
        busy: further models that a run works on, whether it was released or launched by hand.
    """

    places: int
    share: int = 1
    batches: int = 1
    under_way: Sequence[Release] = ()
    busy: frozenset[str] = frozenset()

    @property
    def free(self) -> int:
        """How many releases fit in."""
        return max(self.places - len(self.under_way), 0)

    def kept(self, waiting: int) -> int:
        """How many places are kept for backfills and plans, where `waiting` of them have work."""
        places_in_use = sum(release.kind not in FIRST for release in self.under_way)
        return min(max(min(self.share, self.places - 1) - places_in_use, 0), waiting, self.free)


def offers(
    environment: str,
    model: Model,
    work: Work,
    *,
    held: IntervalSet,
    within: IntervalSet | None = None,
    plan_id: str | None = None,
) -> Iterator[Offer]:
    """Offer the cells of a model that can be built now.

    Args:
        environment: whose cells.
        model: the model.
        work: the cells that the rule has found.
        held: cells that another batch builds, that belong to a plan, that wait, or that failed.
        within: a plan's cells; None outside of a plan.
        plan_id: the plan.
    """
    ready = (work.runnable | work.refresh) - held
    if within is not None:
        ready &= within
    if model.in_order:
        ready = _before_a_gap(ready, work.gaps)
    if plan_id is not None:
        parts = {ReleaseKind.PLAN: ready}
    else:
        recent = ready & (_after(work.ready) | work.refresh)
        parts = {ReleaseKind.DAILY: recent, ReleaseKind.BACKFILL: ready - recent}
    for kind, cells in parts.items():
        if cells:
            yield Offer(environment, kind, model, cells, plan_id)


def releases(offered: Iterable[Offer], room: Room) -> tuple[Release, ...]:
    """Choose the releases to make now; the order of the offers decides between equals.

    Args:
        offered: what is ready, in the order of the graph.
        room: how much may be under way.
    """
    busy = room.busy | {release.model for release in room.under_way if release.model}
    free = [offer for offer in offered if offer.name not in busy]
    first = sorted(
        (offer for offer in free if offer.kind in FIRST), key=lambda o: FIRST.index(o.kind)
    )
    urgent = {offer.name for offer in first if offer.name}
    later = [offer for offer in free if offer.kind not in FIRST]
    later.sort(key=lambda offer: offer.name in urgent)
    kept = room.kept(len({offer.name for offer in later}))
    ahead = _chosen(first, room.free - kept, [])
    after = _fairly(later, room.free - len(ahead), ahead, room.under_way)
    ahead += _chosen(first, room.free - len(ahead) - len(after), [*ahead, *after])
    return (
        *(_release(offer, room, _AHEAD) for offer in ahead),
        *(_release(offer, room, _AHEAD if at < kept else _AFTER) for at, offer in enumerate(after)),
    )


def portion(model: Model, cells: IntervalSet, size: int | None, batches: int) -> IntervalSet:
    """Take from the first cell on as many as so many batches hold; not from too far apart.

    Where batches have any number of consecutive cells, one stretch is taken.
    """
    cadence = model.cadence
    if cadence.unit is Unit.WHOLE:
        return cells
    if size is None:
        return IntervalSet.of([next(iter(cells))])
    most = size * batches
    first = next(iter(cells)).start
    last = instant_of(cells.boundaries[-1])
    if cadence.count(Interval(first, last)) > _SPREAD * most:
        cells = cells.within(epoch_of(first), epoch_of(cadence.shift(first, _SPREAD * most)))
    return _first_cells(model, cells, most)


def _first_cells(model: Model, cells: IntervalSet, most: int) -> IntervalSet:
    taken: list[Interval] = []
    for stretch in cells:
        count = model.cadence.count(stretch)
        if count > most:
            stop = model.cadence.shift(stretch.start, most)
            taken.append(Interval(stretch.start, stop))
            break
        taken.append(stretch)
        most -= count
        if not most or len(taken) == _STRETCHES:
            break
    return IntervalSet.of(taken)


def _chosen(candidates: Sequence[Offer], most: int, besides: Sequence[Offer]) -> list[Offer]:
    """Take the first offers, one per model."""
    chosen: list[Offer] = []
    names = {offer.name for offer in besides if offer.name}
    for offer in candidates:
        if len(chosen) < most and offer.name not in names and offer not in besides:
            chosen.append(offer)
            names |= {offer.name} - {""}
    return chosen


def _fairly(
    candidates: Sequence[Offer], most: int, besides: Sequence[Offer], under_way: Sequence[Release]
) -> list[Offer]:
    """Take in turns from each backfill and plan, one per model; the one with the fewest goes first."""
    has = Counter(
        (release.environment, release.plan_id) for release in under_way if release.kind not in FIRST
    )
    chosen: list[Offer] = []
    names = {offer.name for offer in besides}
    remaining: list[Offer] = [offer for offer in candidates if offer.name not in names]
    while remaining and len(chosen) < most:
        least = min(remaining, key=lambda offer: has[offer.whose])
        chosen.append(least)
        has[least.whose] += 1
        remaining = [offer for offer in remaining if offer.name != least.name]
    return chosen


def _release(offer: Offer, room: Room, priority: int) -> Release:
    cells = (
        portion(offer.model, offer.cells, offer.size, room.batches) if offer.model else offer.cells
    )
    return Release(
        offer.environment,
        offer.kind,
        offer.name,
        cells,
        offer.plan_id,
        offer.mark,
        offer.inputs,
        priority=priority,
    )


def _after(ready: IntervalSet) -> IntervalSet:
    """Every cell after the last ready one; none where no cell is ready."""
    if not ready or ready.boundaries[-1] >= epoch_of(WHOLE_CELL.end):
        return IntervalSet.empty()
    return IntervalSet.of([Interval(instant_of(ready.boundaries[-1]), WHOLE_CELL.end)])


def _before_a_gap(ready: IntervalSet, gaps: IntervalSet) -> IntervalSet:
    """Of a model that reads its own earlier cells, those before which no other gap lies."""
    other_gaps = gaps - ready
    return (
        ready.within(ready.boundaries[0], other_gaps.boundaries[0])
        if ready and other_gaps
        else ready
    )
