"""Cut a plan's cells into batches; each waits only for the batches that build cells it reads.

A plan over years has many thousand batches, so they are kept as rows of whole numbers; the value of a
batch is created on access.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from operator import lt, mul
from typing import TYPE_CHECKING, cast, overload

from backfill_assets.intervals.grid import FixedGrid, Unit
from backfill_assets.intervals.interval import Interval, epoch_of, instant_of
from backfill_assets.models.cells import reach_back
from backfill_assets.planning.plan.batching import below_one, cut
from backfill_assets.planning.plan.plan import PlannedBatch

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.grid import Grid
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream


@dataclass(frozen=True, slots=True)
class Rows:
    """Where the batches of a model start and end, in epoch seconds, and which are certain."""

    starts: Sequence[int]
    ends: Sequence[int]
    certain: Sequence[bool]


@dataclass(frozen=True, slots=True)
class Waits:
    """For every batch the upstream's batches that build what it reads: `[first, last)`."""

    upstream: str
    firsts: Sequence[int]
    lasts: Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class PlannedBatches(Sequence[PlannedBatch]):
    """The batches of one model, each created on access.

    Attributes:
        model: whose.
        cadence: its cells.
        rows: where they start and end.
        waits: what they read of other models of the plan.
        behind: how many batches of the model itself may be in flight; None for any number.
    """

    model: str
    cadence: Cadence
    rows: Rows
    waits: tuple[Waits, ...] = ()
    behind: int | None = None

    def __len__(self) -> int:
        return len(self.rows.starts)

    @overload
    def __getitem__(self, index: int) -> PlannedBatch: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[PlannedBatch, ...]: ...

    def __getitem__(self, index: int | slice) -> PlannedBatch | tuple[PlannedBatch, ...]:
        if isinstance(index, slice):
            return tuple(self._batch(number) for number in range(len(self))[index])
        return self._batch(range(len(self))[index])

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (tuple, PlannedBatches)):
            return tuple(self) == tuple(cast("Sequence[PlannedBatch]", other))
        return False

    def __hash__(self) -> int:
        return hash((self.model, tuple(self.rows.starts)))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def _batch(self, number: int) -> PlannedBatch:
        start, end = self.rows.starts[number], self.rows.ends[number]
        interval = Interval(instant_of(start), instant_of(end))
        own = self.behind is not None and number >= self.behind
        return PlannedBatch(
            interval=interval,
            cells=self.cadence.count(interval),
            certain=self.rows.certain[number],
            waits_for=(
                *(((self.model, number - (self.behind or 0)),) if own else ()),
                *(
                    (read.upstream, other)
                    for read in self.waits
                    for other in range(read.firsts[number], read.lasts[number])
                ),
            ),
        )


def planned_batches(
    graph: Graph,
    cells: Mapping[str, tuple[IntervalSet, IntervalSet]],
    sizes: Mapping[str, int | None],
) -> dict[str, PlannedBatches]:
    """Cut every model's cells into batches, each with the batches that it waits for.

    Args:
        graph: what the environment is to run.
        cells: per model, its certain cells and the others.
        sizes: per model, how many cells a batch may have; None for any number.

    Raises:
        DeclarationError: a model's batch size or concurrency is below 1.
    """
    same: dict[object, Rows] = {}  # models with the same gaps have the same rows, and waits
    rows: dict[str, Rows] = {}
    for name, (certain, other) in cells.items():
        model = graph.models[name]
        key = (model.cadence.grid, sizes[name], certain.boundaries, other.boundaries)
        if key not in same:
            same[key] = rows_of(model, certain, other, sizes[name])
        rows[name] = same[key]
    waits_by_key: dict[object, Waits] = {}
    return {name: _of_model(graph, graph.models[name], rows, waits_by_key) for name in cells}


def rows_of(model: Model, certain: IntervalSet, other: IntervalSet, size: int | None) -> Rows:
    """Cut the certain cells of a model and the others, each for themselves."""
    starts, ends = cut(model.cadence, certain, size)
    if not other:
        return Rows(starts, ends, (True,) * len(starts))
    more = cut(model.cadence, other, size)
    both = sorted(
        (
            *((start, end, True) for start, end in zip(starts, ends, strict=True)),
            *((start, end, False) for start, end in zip(*more, strict=True)),
        )
    )
    return Rows([row[0] for row in both], [row[1] for row in both], [row[2] for row in both])


def _of_model(
    graph: Graph, model: Model, rows: Mapping[str, Rows], waits_by_key: dict[object, Waits]
) -> PlannedBatches:
    if model.batch_concurrency < 1:
        raise below_one("batch_concurrency", model.batch_concurrency)
    mine = rows[model.name]
    waits: list[Waits] = []
    for up in model.reads:
        if up.name not in rows or up.name == model.name:
            continue
        upstream_cadence = graph.models[up.name].cadence
        key = (model.cadence.grid, upstream_cadence.grid, up.lookback, id(mine), id(rows[up.name]))
        if key not in waits_by_key:
            waits_by_key[key] = waits_of(model.cadence, up, upstream_cadence, mine, rows[up.name])
        waits.append(replace(waits_by_key[key], upstream=up.name))
    behind = 1 if model.in_order else model.batch_concurrency
    return PlannedBatches(model.name, model.cadence, mine, tuple(waits), behind)


def waits_of(own: Cadence, upstream: Upstream, theirs: Cadence, mine: Rows, other: Rows) -> Waits:
    """Find for every batch the upstream's batches that build cells which it reads.

    Args:
        own: the reader's cadence.
        upstream: how it reads.
        theirs: the upstream's cadence.
        mine: the reader's batches.
        other: the upstream's batches.
    """
    count, of_theirs = len(mine.starts), len(other.starts)
    if Unit.WHOLE in (own.unit, theirs.unit):
        return Waits(upstream.name, (0,) * count, (of_theirs,) * count)
    as_they_are = upstream.lookback == 0 and own.grid == theirs.grid
    if as_they_are and (mine.starts, mine.ends) == (other.starts, other.ends):
        return Waits(upstream.name, range(count), range(1, count + 1))
    back = reach_back(own, upstream, theirs)
    lows = mine.starts if as_they_are else map(back, mine.starts)
    firsts = [*map(bisect_right, repeat(other.ends), lows)]
    lasts = [*map(bisect_left, repeat(other.starts), mine.ends)]
    return Waits(upstream.name, firsts, lasts)


def columns(batches: Sequence[PlannedBatch]) -> dict[str, Sequence[int]]:
    """Give all batches as columns of whole numbers, however they are kept.

    Returns:
        ``start``, ``end``, ``certain`` and ``cells``, and for every model that a batch waits for
        its first and last number there, `[first, last)`: 0, 0 for none.

    Raises:
        ValueError: a batch waits for batches of a model that are not consecutive.
    """
    if isinstance(batches, PlannedBatches):
        return _columns(batches)
    spans = [batch.interval for batch in batches]
    waits = [_runs(batch.waits_for) for batch in batches]
    named: dict[str, Sequence[int]] = {
        "start": [epoch_of(span.start) for span in spans],
        "end": [epoch_of(span.end) for span in spans],
        "certain": [batch.certain for batch in batches],
        "cells": [batch.cells for batch in batches],
    }
    for name in sorted({name for upstreams in waits for name in upstreams}):
        runs = [upstreams.get(name, (0, 0)) for upstreams in waits]
        named[f"first of {name}"] = [first for first, _ in runs]
        named[f"last of {name}"] = [last for _, last in runs]
    return named


def _columns(batches: PlannedBatches) -> dict[str, Sequence[int]]:
    rows = batches.rows
    named: dict[str, Sequence[int]] = {
        "start": rows.starts,
        "end": rows.ends,
        "certain": rows.certain,
        "cells": _counts(batches.cadence.grid, rows),
    }
    for name, firsts, lasts in sorted(_windows(batches)):
        some = [*map(lt, firsts, lasts)]
        if any(some):
            named[f"first of {name}"] = [*map(mul, firsts, some)]
            named[f"last of {name}"] = [*map(mul, lasts, some)]
    return named


def _windows(batches: PlannedBatches) -> Iterator[tuple[str, Sequence[int], Sequence[int]]]:
    """Give per model the `[first, last)` of its batches that each batch waits for."""
    for read in batches.waits:
        yield read.upstream, read.firsts, read.lasts
    count, behind = len(batches), batches.behind
    if behind is not None and behind < count:
        none = (0,) * behind
        yield batches.model, (*none, *range(count - behind)), (*none, *range(1, count - behind + 1))


def _counts(grid: Grid, rows: Rows) -> list[int]:
    """Give how many cells every batch has."""
    if isinstance(grid, FixedGrid):
        step, phase = grid.step, grid.phase
        return [
            (end - 1 - phase) // step + 1 - (start - phase) // step
            for start, end in zip(rows.starts, rows.ends, strict=True)
        ]
    ends = zip(rows.starts, rows.ends, strict=True)
    return [grid.index(end - 1) + 1 - grid.index(start) for start, end in ends]


def _runs(waits_for: tuple[tuple[str, int], ...]) -> dict[str, tuple[int, int]]:
    runs: dict[str, tuple[int, int]] = {}
    for name, number in waits_for:
        first, last = runs.get(name, (number, number))
        if last != number:
            message = f"it waits for {name} {first}..{last - 1} and {number}, which don't follow"
            raise ValueError(message)
        runs[name] = (first, number + 1)
    return runs
