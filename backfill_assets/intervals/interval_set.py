"""An interval set: any number of intervals as one canonical value with set operators.

It is one flat, strictly increasing tuple of epoch seconds `(start0, end0, start1, end1, ...)`:
sorted, disjoint, touching intervals joined. So equal sets are equal tuples, and every operator is
one linear sweep over integers.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain, compress
from operator import gt, lt
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval import EPOCH, Interval, epoch_of, instant_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_GLIMPSE = 6
_ONE = 2
_SECONDS_OF_A_DAY = 86_400
_ALMOST_A_SECOND = timedelta(microseconds=999_999)


def _not_canonical(boundaries: tuple[int, ...]) -> RequestError:
    dots = ", ..." if len(boundaries) > _GLIMPSE else ""
    shown = ", ".join(map(str, boundaries[:_GLIMPSE]))
    return RequestError(
        found="boundaries must be pairs of strictly increasing epoch seconds, found "
        f"({shown}{dots})",
        do="build the set with IntervalSet.of(...) instead",
    )


@dataclass(frozen=True, slots=True)
class IntervalSet:
    """An immutable set of instants, made of disjoint intervals.

    Attributes:
        boundaries: epoch seconds `(start0, end0, start1, end1, ...)`, strictly increasing.

    Raises:
        RequestError: `boundaries` is not in that canonical form.
    """

    boundaries: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        flat = self.boundaries
        if len(flat) % 2 or not all(map(lt, flat, flat[1:])):
            raise _not_canonical(flat)

    @classmethod
    def empty(cls) -> IntervalSet:
        """The set without intervals."""
        return cls()

    @classmethod
    def of(cls, intervals: Iterable[Interval]) -> IntervalSet:
        """The set of all instants of these intervals, in any order, overlapping or not.

        Raises:
            RequestError: a boundary is not a whole second.
        """
        given = [*intervals]
        return cls.of_bounds(
            [_whole(each.start) for each in given], [_whole(each.end) for each in given]
        )

    @classmethod
    def of_pairs(cls, pairs: Iterable[tuple[int, int]]) -> IntervalSet:
        """The same from pairs of epoch seconds; an empty or reversed pair is skipped."""
        real = [(start, end) for start, end in pairs if start < end]
        return cls.of_bounds([start for start, _ in real], [end for _, end in real])

    @classmethod
    def of_bounds(cls, starts: Iterable[int], ends: Iterable[int]) -> IntervalSet:
        """The same from where intervals that are not empty start, and where they end.

        Where the next start lies past as many ends as there were starts, no interval is open: a gap.
        """
        first, last = sorted(starts), sorted(ends)  # sorting sorted runs is one merge: linear
        gaps = [*map(gt, first[1:], last)]
        kept = ((*first[:1], *compress(first[1:], gaps)), (*compress(last, gaps), *last[-1:]))
        return _canonical(_paired(*kept))

    @classmethod
    def union_all(cls, sets: Iterable[IntervalSet]) -> IntervalSet:
        """Everything that is in at least one of the sets."""
        boundaries = [each.boundaries for each in sets if each.boundaries]
        if len(boundaries) == 1:
            return _canonical(boundaries[0])
        return cls.of_bounds(
            [*chain(*(flat[::2] for flat in boundaries))],
            [*chain(*(flat[1::2] for flat in boundaries))],
        )

    def pairs(self) -> Iterator[tuple[int, int]]:
        """The intervals as pairs of epoch seconds, in order."""
        flat = iter(self.boundaries)
        return zip(flat, flat, strict=True)

    def covers(self, start: int, end: int) -> bool:
        """Whether all of `[start, end)`, in epoch seconds, is in the set."""
        at = bisect_right(self.boundaries, start)
        return at % 2 == 1 and end <= self.boundaries[at]

    def within(self, start: int, end: int) -> IntervalSet:
        """The part in `[start, end)`, in epoch seconds; logarithmic plus the answer's size."""
        if end <= start:
            return IntervalSet()
        return IntervalSet(_common(_window(self.boundaries, start, end), (start, end)))

    def hull(self) -> Interval | None:
        """The smallest interval that holds the set, or None of the empty set."""
        if not self.boundaries:
            return None
        return Interval(instant_of(self.boundaries[0]), instant_of(self.boundaries[-1]))

    def span(self) -> Interval:
        """The smallest interval that holds a set which is not empty.

        Raises:
            RequestError: it holds nothing.
        """
        hull = self.hull()
        if hull is None:
            raise RequestError(
                found="an empty set spans no interval", do="ask for `hull()`, or for some cells"
            )
        return hull

    def between(self) -> IntervalSet:
        """The gaps between its intervals."""
        return _canonical(self.boundaries[1:-1])

    def seconds(self) -> int:
        """How long all its intervals last together."""
        return sum(self.boundaries[1::2]) - sum(self.boundaries[::2])

    def __iter__(self) -> Iterator[Interval]:
        for start, end in self.pairs():
            yield Interval(instant_of(start), instant_of(end))

    def __len__(self) -> int:
        return len(self.boundaries) // 2

    def __bool__(self) -> bool:
        return bool(self.boundaries)

    def __contains__(self, item: Interval | datetime) -> bool:
        if isinstance(item, datetime):
            return bisect_right(self.boundaries, epoch_of(item)) % 2 == 1
        return self.covers(epoch_of(item.start), epoch_of(item.end + _ALMOST_A_SECOND))

    def __or__(self, other: IntervalSet) -> IntervalSet:
        if not other.boundaries or self.boundaries == other.boundaries:
            return self
        if not self.boundaries:
            return other
        return IntervalSet.union_all((self, other))

    def __and__(self, other: IntervalSet) -> IntervalSet:
        mine, others = self.boundaries, other.boundaries
        if not mine or not others:
            return IntervalSet()
        if len(others) == _ONE:
            return _canonical(_clipped(mine, *others))
        if len(mine) == _ONE:
            return _canonical(_clipped(others, *mine))
        mine = _window(mine, others[0], others[-1])
        return _canonical(_common(mine, _window(others, self.boundaries[0], self.boundaries[-1])))

    def __sub__(self, other: IntervalSet) -> IntervalSet:
        mine = self.boundaries
        if not mine:
            return self
        away = _window(other.boundaries, mine[0], mine[-1])
        if not away:
            return self
        if len(mine) == _ONE:
            return _canonical(_gaps(away, *mine))
        outside = (min(mine[0], away[0]) - 1, *away, max(mine[-1], away[-1]) + 1)
        return _canonical(_common(mine, outside))

    def __str__(self) -> str:
        return "{" + ", ".join(map(str, self)) + "}"


def _whole(instant: datetime) -> int:
    """The epoch second of an instant in UTC, as all boundaries of intervals are."""
    since = instant - EPOCH
    if since.microseconds:
        raise RequestError(
            found=f"{instant.isoformat()} is not a whole second, but interval sets hold whole "
            "seconds",
            do="round the interval to its model's cells first",
        )
    return since.days * _SECONDS_OF_A_DAY + since.seconds


def _canonical(flat: tuple[int, ...]) -> IntervalSet:
    """A set of boundaries that an operator has made, and that need no check."""
    made = object.__new__(IntervalSet)
    object.__setattr__(made, "boundaries", flat)
    return made


def _clipped(flat: tuple[int, ...], start: int, end: int) -> tuple[int, ...]:
    """The part in `[start, end)`; only its two ends are looked up."""
    inside = _window(flat, start, end)
    if not inside:
        return inside
    first = (max(inside[0], start),) if inside[0] < start else inside[:1]
    last = (min(inside[-1], end),) if inside[-1] > end else inside[-1:]
    return (*first, *inside[1:-1], *last)


def _gaps(away: tuple[int, ...], start: int, end: int) -> tuple[int, ...]:
    """The parts of `[start, end)` that pairs which touch it leave free."""
    first = () if away[0] <= start else (start,)
    last = () if away[-1] >= end else (end,)
    return (*first, *away[1 if away[0] <= start else 0 : len(away) - (away[-1] >= end)], *last)


def _window(flat: tuple[int, ...], start: int, end: int) -> tuple[int, ...]:
    """The pairs that touch `[start, end)`, uncut."""
    first, last = bisect_right(flat, start), bisect_left(flat, end)
    return flat[first - first % 2 : last + last % 2]


def _common(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The intersection of two canonical tuples, which is canonical again.

    No more than two intervals are open at once; both are from a start on that lies before as many
    ends as there were starts before it, up to the last of these ends.
    """
    starts = sorted((*left[::2], *right[::2]))[1:]
    ends = sorted((*left[1::2], *right[1::2]))
    both = [*map(lt, starts, ends)]
    return _paired([*compress(starts, both)], [*compress(ends, both)])


def _paired(starts: Sequence[int], ends: Sequence[int]) -> tuple[int, ...]:
    return tuple(chain.from_iterable(zip(starts, ends, strict=True)))
