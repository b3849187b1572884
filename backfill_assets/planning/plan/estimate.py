"""Estimate what a plan will take: its start, its batches, and its promotion.

Batches are estimated from recorded batches; without history, from the bytes that they read.
`planning.overhead` estimates the start and the promotion. The estimates are upper bounds, as the plan's
cells are: work that is done only if its input really changes counts in full, and is named.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import counted
from backfill_assets.planning.plan.batching import BYTES_PER_SECOND
from backfill_assets.planning.plan.overhead import (
    DOUBT,
    HIGH,
    MEDIAN,
    Overhead,
    Pair,
    cold_seconds,
    overhead,
    quantile,
    slowness,
)
from backfill_assets.planning.plan.plan import Estimate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.planning.plan.overhead import OperationFact
    from backfill_assets.planning.plan.plan import ModelPlan, Plan, PlannedBatch, PlannedRead

_BATCH_SECONDS = 2.0  # the cost of a batch before its first row, on one idle machine
_COMMIT_SECONDS = 0.5  # the cost of a batch without rows
_GB = 1e9
_HOUR = 3600


@dataclass(frozen=True, slots=True)
class BatchFact:
    """The measured duration and size of one committed batch.

    Attributes:
        seconds: from opening to its record.
        cells: how many.
        rows: that they hold.
        bytes: that it wrote.
        cold: whether it was the first batch of its process, which takes longer.
    """

    seconds: float
    cells: int
    rows: int = 0
    bytes: int = 0
    cold: bool = False


@dataclass(frozen=True, slots=True)
class TableSize:
    """How much a table holds.

    Attributes:
        bytes: of its files.
        cells: the stretch of time that they are about.
    """

    bytes: int
    cells: IntervalSet


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices; None for a thing that is not charged.

    Attributes:
        hour: of computing.
        gigabyte: of writing.
        currency: of both, such as ``EUR``.
    """

    hour: float | None = None
    gigabyte: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Known:
    """The recorded values that estimates rest on.

    Attributes:
        history: per model, the facts of its batches.
        sizes: per source or model, how much its table holds.
        prices: what things cost.
        batches_at_once: how many batches the process runs.
        operations: the time that plans took beside their batches.
    """

    history: Mapping[str, Sequence[BatchFact]] = field(
        default_factory=dict[str, "Sequence[BatchFact]"]
    )
    sizes: Mapping[str, TableSize] = field(default_factory=dict[str, TableSize])
    prices: Prices = field(default_factory=Prices)
    batches_at_once: int = 1
    operations: Sequence[OperationFact] = ()


def estimate(plan: Plan, known: Known) -> Plan:
    """Fill in the estimates of a plan: per model, and overall.

    Raises:
        RequestError: no batch may run at all.
    """
    if known.batches_at_once < 1:
        raise RequestError(
            found=f"{known.batches_at_once} batches may run at once, but a plan needs at least 1"
        )
    commit = _commit(known)
    guesses = {
        planned.model: commit if plan.request.empty and planned.certain else _guess(planned, known)
        for planned in plan.models
        if planned.batches
    }
    models = tuple(
        replace(planned, estimate=_estimate([planned], guesses, known, _NONE))
        if planned.batches
        else planned
        for planned in plan.models
    )
    building = [planned for planned in plan.models if planned.batches]
    beside = overhead(plan, known.operations)
    total = _estimate(building, guesses, known, beside) if building else None
    return replace(plan, models=models, estimate=total)


@dataclass(frozen=True, slots=True)
class _Guess:
    """The estimated pace and size of one model's batches.

    Attributes:
        fixed: seconds of a batch whatever its size.
        per_cell: seconds of each of its cells.
        off: the factor between estimated and recorded seconds, at the median and at P90.
        bytes_read: by all its batches.
        bytes_written: per cell.
        batches: how many recorded ones it rests on.
        recorded_empty: whether nothing is computed.
    """

    fixed: float
    per_cell: float
    off: Pair
    bytes_read: int
    bytes_written: float
    batches: int
    recorded_empty: bool = False

    def seconds(self, batch: PlannedBatch) -> Pair:
        line = self.fixed + self.per_cell * batch.cells
        return line * self.off[0], line * self.off[1]


_NONE = Overhead((0.0, 0.0), (0.0, 0.0))


def _commit(known: Known) -> _Guess:
    """Describe a batch that is recorded without computing: it commits, and reads no input."""
    seconds = _COMMIT_SECONDS * slowness(known.operations)
    return _Guess(seconds, 0.0, (1.0, DOUBT), 0, 0.0, 0, recorded_empty=True)


def _guess(model: ModelPlan, known: Known) -> _Guess:
    read = sum(_bytes(table, known.sizes) for table in model.reads)
    facts = _warm(known.history.get(model.model, ()), cold_seconds(known.operations))
    cells = sum(batch.cells for batch in model.batches)
    if not facts:
        slow = slowness(known.operations)
        per_cell = slow * read / cells / BYTES_PER_SECOND
        return _Guess(slow * _BATCH_SECONDS, per_cell, (1.0, DOUBT), read, read / cells, 0)
    fixed, per_cell = _line(facts)
    ratios = sorted(fact.seconds / (fixed + per_cell * fact.cells) for fact in facts)
    off = (quantile(ratios, MEDIAN), quantile(ratios, HIGH))
    written = sum(fact.bytes for fact in facts) / sum(fact.cells for fact in facts)
    return _Guess(fixed, per_cell, off, read, written, len(facts))


def _warm(facts: Iterable[BatchFact], cold: float) -> list[BatchFact]:
    """Give the seconds of batches in a warm process; the start of a plan counts the others."""
    usable = [fact for fact in facts if fact.seconds > 0 < fact.cells]
    return [fact for fact in usable if not fact.cold] or [
        replace(fact, seconds=max(fact.seconds - cold, fact.seconds / 4), cold=False)
        for fact in usable
    ]


def _line(facts: Sequence[BatchFact]) -> Pair:
    """Fit seconds = fixed + per_cell * cells; neither is ever negative."""
    count = len(facts)
    mean_cells = sum(fact.cells for fact in facts) / count
    mean_seconds = sum(fact.seconds for fact in facts) / count
    spread = sum((fact.cells - mean_cells) ** 2 for fact in facts)
    if not spread:  # all of one size: how much of it is fixed can't be known
        return mean_seconds / 2, mean_seconds / 2 / mean_cells
    together = sum((fact.cells - mean_cells) * (fact.seconds - mean_seconds) for fact in facts)
    slope = max(0.0, together / spread)
    fixed = mean_seconds - slope * mean_cells
    return (fixed, slope) if fixed > 0 else (0.0, mean_seconds / mean_cells)


def _bytes(read: PlannedRead, sizes: Mapping[str, TableSize]) -> int:
    """The share of a table that is read, by time."""
    size = sizes.get(read.upstream)
    if size is None or not size.cells:
        return 0
    return round(size.bytes * (read.cells & size.cells).seconds() / size.cells.seconds())


def _estimate(
    models: Sequence[ModelPlan], guesses: Mapping[str, _Guess], known: Known, beside: Overhead
) -> Estimate:
    batches = _wall(models, guesses, known.batches_at_once)
    median, high = map(sum, zip(beside.start, batches, beside.promotion, strict=True))
    written = sum(
        guesses[planned.model].bytes_written * batch.cells
        for planned in models
        for batch in planned.batches
    )
    by_size = (known.prices.gigabyte or 0) * written / _GB
    hour = known.prices.hour or 0
    return Estimate(
        seconds=(median, high),
        cost=(hour * median / _HOUR + by_size, hour * high / _HOUR + by_size),
        bytes_read=sum(guesses[planned.model].bytes_read for planned in models),
        rests_on="; ".join(_rests_on(models, guesses, known, beside)),
        start=beside.start[0],
        batches=batches[0],
        promotion=beside.promotion[0],
        currency=known.prices.currency if hour or by_size else "",
    )


def _wall(models: Sequence[ModelPlan], guesses: Mapping[str, _Guess], at_once: int) -> Pair:
    """Give every batch to the thread that is free first, as the schedule does, upstream first.

    Args:
        models: upstream before downstream.
        guesses: how long a batch of each takes.
        at_once: how many batches the process runs, of whichever models.
    """
    walls: list[float] = []
    for which in (0, 1):
        ends: dict[tuple[str, int], float] = {}
        free = [0.0] * at_once  # in order
        for model in models:
            for number, batch in enumerate(model.batches):
                ready = max((ends.get(awaited, 0.0) for awaited in batch.waits_for), default=0.0)
                # Of the threads that are free by then, the one that would wait for the shortest time.
                at = free.pop(max(bisect_right(free, ready) - 1, 0))
                end = max(at, ready) + guesses[model.model].seconds(batch)[which]
                ends[model.model, number] = end
                insort(free, end)
        walls.append(free[-1])
    return walls[0], walls[1]


def _rests_on(
    models: Sequence[ModelPlan], guesses: Mapping[str, _Guess], known: Known, beside: Overhead
) -> list[str]:
    recorded = sum(guesses[planned.model].batches for planned in models)
    empty = [planned for planned in models if guesses[planned.model].recorded_empty]
    without = [
        planned for planned in models if not guesses[planned.model].batches and planned not in empty
    ]
    sized = [planned for planned in without if guesses[planned.model].bytes_read]
    parts = [counted(recorded, "recorded batch", "recorded batches")] if recorded else []
    for some, basis in (
        (empty, "recording without computing"),
        (sized, "the bytes it reads alone, no history"),
        (
            [planned for planned in without if planned not in sized],
            "nothing: neither history nor size",
        ),
    ):
        if some:
            whose = f" for {_named(some)}" if len(models) > 1 else ""
            parts.append(f"{basis}{whose}")
    return [*parts, *_doubtful(models), *([] if beside is _NONE else [_timed(known)])]


def _timed(known: Known) -> str:
    """Name the basis of the estimates of start and promotion."""
    number = len(known.operations)
    learned = counted(number, "operation")
    return f"start and promotion: {f'{learned} before' if number else 'constants, no history'}"


def _doubtful(models: Iterable[ModelPlan]) -> list[str]:
    batches = [batch for model in models for batch in model.batches]
    unsure = sum(batch.cells for batch in batches if not batch.certain)
    whole = sum(batch.cells for batch in batches)
    return [f"{unsure:,} of {whole:,} cells only if what they read changes"] if unsure else []


def _named(models: Sequence[ModelPlan]) -> str:
    names = [planned.model for planned in models]
    return names[0] if len(names) == 1 else f"{len(names)} models"
