"""The batches of a plan, and which of them each waits for: only those that build what it reads."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.models.upstream import OwnCells
from backfill_assets.planning.batching import batches, waits_for
from backfill_assets.planning.plan import PlannedBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream

_Span = tuple[int, int]


def planned_batches(
    graph: Graph, cells: Mapping[str, tuple[IntervalSet, IntervalSet]]
) -> dict[str, tuple[PlannedBatch, ...]]:
    """Cut every model's cells into batches and tell which of them each waits for.

    Args:
        graph: what the environment is to run.
        cells: per model, its certain cells and the others.
    """
    cut: dict[str, tuple[tuple[Interval, bool], ...]] = {}
    spans: dict[str, tuple[list[int], list[int]]] = {}
    for name, (certain, other) in cells.items():
        model = graph.models[name]
        both = [
            (one, is_certain)
            for some, is_certain in ((certain, True), (other, False))
            for one in batches(model.cadence, some, model.batch_size)
        ]
        cut[name] = tuple(sorted(both))
        spans[name] = (
            [epoch_of(one.start) for one, _ in cut[name]],
            [epoch_of(one.end) for one, _ in cut[name]],
        )
    return {name: _of_model(graph, graph.models[name], cut[name], spans) for name in cells}


def _of_model(
    graph: Graph,
    model: Model,
    cut: Sequence[tuple[Interval, bool]],
    spans: Mapping[str, tuple[list[int], list[int]]],
) -> tuple[PlannedBatch, ...]:
    own = waits_for([one for one, _ in cut], model.batch_concurrency, in_order=model.in_order)
    reads = [
        (up.name, spans[up.name], span_read(model.cadence, up, graph.models[up.name].cadence))
        for up in model.reads
        if up.name in spans and up.name != model.name
    ]
    starts, ends = spans[model.name]
    return tuple(
        PlannedBatch(
            interval=interval,
            cells=model.cadence.count(interval),
            certain=certain,
            waits_for=(
                *((model.name, other) for other in own[number]),
                *_upstream(reads, starts[number], ends[number]),
            ),
        )
        for number, (interval, certain) in enumerate(cut)
    )


def _upstream(
    reads: Iterable[tuple[str, tuple[list[int], list[int]], Callable[[int, int], _Span]]],
    start: int,
    end: int,
) -> Iterable[tuple[str, int]]:
    for name, (starts, ends), read in reads:
        low, high = read(start, end)
        for number in range(bisect_right(ends, low), bisect_left(starts, high)):
            yield name, number


def span_read(own: Cadence, upstream: Upstream, theirs: Cadence) -> Callable[[int, int], _Span]:
    """Give what consecutive cells read of an upstream as one span, in epoch seconds.

    It is the span of `models.cells.cells_read`, up to the upstream's life and cells.
    """
    if Unit.WHOLE in (own.unit, theirs.unit):
        whole = (epoch_of(WHOLE_CELL.start), epoch_of(WHOLE_CELL.end))
        return lambda _start, _end: whole
    lookback = upstream.lookback
    count = lookback.count if isinstance(lookback, OwnCells) else lookback
    grid = own.grid if isinstance(lookback, OwnCells) else theirs.grid
    return lambda start, end: (grid.boundary(grid.index(start) - count), end)
