"""Cut cells of one snapshot into batches, which are computed, audited and committed together."""

from __future__ import annotations

from itertools import chain, takewhile
from operator import sub
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.grid import FixedGrid
from backfill_assets.intervals.interval import Interval, epoch_of, instant_of
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.intervals.cadence import Cadence


def below_one(name: str, found: int) -> DeclarationError:
    """Refuse a batch size, or a batch concurrency, below one."""
    return DeclarationError(
        found=f"{name} is {found}, but must be at least 1", do="Leave it out for no limit."
    )


def batches(
    cadence: Cadence, missing: IntervalSet, batch_size: int | None = None
) -> tuple[Interval, ...]:
    """The missing cells cut at every gap and after every `batch_size` cells, in order.

    An open last cell stays open.

    Raises:
        DeclarationError: `batch_size` is below 1.
    """
    starts, ends = cut(cadence, missing, batch_size)
    pairs = zip(starts, ends, strict=True)
    return tuple(Interval(instant_of(start), instant_of(end)) for start, end in pairs)


def cut(
    cadence: Cadence, missing: IntervalSet, batch_size: int | None = None
) -> tuple[Sequence[int], Sequence[int]]:
    """Cut as `batches` does, and give the starts and the ends of the batches in epoch seconds.

    Raises:
        DeclarationError: `batch_size` is below 1.
    """
    if batch_size is not None and batch_size < 1:
        raise below_one("batch_size", batch_size)
    cells = cadence.snap_out(missing)
    flat = cells.boundaries
    if batch_size is None:
        return flat[::2], _not_past(flat[1::2], missing)
    if isinstance(cadence.grid, FixedGrid):
        step = cadence.grid.step * batch_size
        if max(map(sub, flat[1::2], flat[::2]), default=0) <= step:  # no gap is longer than a batch
            return flat[::2], _not_past(flat[1::2], missing)
        rows = [range(start, end, step) for start, end in cells.pairs()]
        stops = [(*row[1:], end) for row, end in zip(rows, flat[1::2], strict=True)]
        return [*chain(*rows)], _not_past([*chain(*stops)], missing)
    starts: list[int] = []
    ends: list[int] = []
    grid = cadence.grid
    for start, end in cells.pairs():
        first, last = grid.index(start), grid.index(end - 1) + 1
        inner = [grid.boundary(number) for number in range(first + batch_size, last, batch_size)]
        starts += (start, *inner)
        ends += (*inner, end)
    return starts, _not_past(ends, missing)


def _not_past(ends: Sequence[int], missing: IntervalSet) -> Sequence[int]:
    """Keep an open last cell open."""
    if not ends or ends[-1] <= missing.boundaries[-1]:
        return ends
    return (*ends[:-1], missing.boundaries[-1])


_NONE = IntervalSet.empty()

BATCH_SECONDS = 1.5
"""What a batch costs whatever it reads: opening, planning the query, auditing, committing, recording; measured."""

BYTES_PER_SECOND = 40e6
"""About how many bytes of files a batch reads in a second, where no history tells."""

MOST_STRETCHES = 50
"""How many stretches a batch may have: each is a condition of its own in what Spark plans."""


def joined(
    cadence: Cadence,
    missing: IntervalSet,
    size: int | None,
    bytes_per_cell: int,
    apart: IntervalSet = _NONE,
) -> tuple[IntervalSet, ...]:
    """The missing cells as batches of one or several stretches, in order.

    Neighbours go in one batch where reading the cells between them as well costs less than another
    batch, and where a batch may have as many cells as there are from its first to its last: its query is
    asked for all of them. That is careful: most of the files between are not even opened.

    Args:
        cadence: whose cells they are.
        missing: the cells.
        size: how many of them a batch may have; None for any number of consecutive ones.
        bytes_per_cell: how much each reads; 0 where that is not known: a batch has one stretch then.
        apart: cells whose stretches are batches of their own.

    Raises:
        DeclarationError: `size` is below 1.
    """
    groups: list[list[Interval]] = []
    alone = True
    for stretch in batches(cadence, missing, size):
        before, alone = alone, bool(IntervalSet.of([stretch]) & apart)
        if (
            not (before or alone)
            and len(groups[-1]) < MOST_STRETCHES
            and (size is None or cadence.count(Interval(groups[-1][0].start, stretch.end)) <= size)
            and _is_near(cadence, groups[-1][-1], stretch, bytes_per_cell)
        ):
            groups[-1].append(stretch)
        else:
            groups.append([stretch])
    return tuple(map(IntervalSet.of, groups))


def _is_near(cadence: Cadence, before: Interval, after: Interval, bytes_per_cell: int) -> bool:
    """Whether the cells between two stretches are read sooner than another batch is begun."""
    between = cadence.count(Interval(before.end, after.start))
    return 0 < between * bytes_per_cell < BATCH_SECONDS * BYTES_PER_SECOND


def unblocked(
    batches: Sequence[Interval], blocked: IntervalSet, *, in_order: bool = False
) -> tuple[Interval, ...]:
    """The batches without a blocked cell; of ordered ones, only those before the first with one."""

    def is_free(batch: Interval) -> bool:
        return not blocked.within(epoch_of(batch.start), epoch_of(batch.end))

    return tuple((takewhile if in_order else filter)(is_free, batches))
