from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals import Cadence, Daily, Hourly, Interval, IntervalSet
from backfill_assets.planning.plan.batching import (
    BATCH_SECONDS,
    BYTES_PER_SECOND,
    MOST_STRETCHES,
    batches,
    joined,
    unblocked,
)
from backfill_assets_tests.intervals.strategies import cadences, instants


@given(cadences, instants, st.sets(st.integers(0, 60)), st.none() | st.integers(1, 70))
def test_batches_hold_exactly_the_missing_cells_and_never_span_a_gap(
    cadence: Cadence, at: datetime, numbers: set[int], size: int | None
):
    cells = [
        Interval(cadence.shift(at, number), cadence.shift(at, number + 1)) for number in numbers
    ]
    missing = IntervalSet.of(cells)

    cut = batches(cadence, missing, size)

    assert IntervalSet.of(cut) == missing
    assert sum(map(cadence.count, cut)) == len(cells)
    assert all(batch in missing for batch in cut)
    assert list(cut) == sorted(cut)
    if size is None:
        assert len(cut) == len(missing)
    else:
        assert all(cadence.count(batch) <= size for batch in cut)


@given(
    cadences,
    instants,
    st.sets(st.integers(0, 60)),
    st.none() | st.integers(1, 70),
    st.integers(0, 3).map(lambda cells: cells * 10**7 + 1) | st.sampled_from([0, 1]),
)
def test_joined_stretches_are_the_missing_cells_near_each_other_and_no_more_than_fit(
    cadence: Cadence, at: datetime, numbers: set[int], size: int | None, bytes_per_cell: int
):
    cells = [
        Interval(cadence.shift(at, number), cadence.shift(at, number + 1)) for number in numbers
    ]
    missing = IntervalSet.of(cells)

    found = joined(cadence, missing, size, bytes_per_cell)

    assert IntervalSet.union_all(found) == missing
    assert sum(map(cadence.count, found)) == len(cells)
    spans = [batch.span() for batch in found]
    assert all(span.end <= other.start for span, other in pairwise(spans))
    for stretches in found:
        assert size is None or cadence.count(stretches.span()) <= size
        assert len(stretches) <= MOST_STRETCHES
        assert all(
            costs(cadence, gap, bytes_per_cell) < BATCH_SECONDS for gap in stretches.between()
        )
    for stretches, other in pairwise(found):  # nothing is left apart that could go together
        gap = IntervalSet.of([stretches.span(), other.span()]).between()
        near = gap and bytes_per_cell and costs(cadence, gap.span(), bytes_per_cell) < BATCH_SECONDS
        first = batches(cadence, other, size)[0]
        fits = size is None or cadence.count(Interval(stretches.span().start, first.end)) <= size
        assert not (near and fits and len(stretches) < MOST_STRETCHES)


def costs(cadence: Cadence, gap: Interval, bytes_per_cell: int) -> float:
    return cadence.count(gap) * bytes_per_cell / BYTES_PER_SECOND


@given(cadences, instants, st.sets(st.integers(0, 60)), st.none() | st.integers(1, 70))
def test_where_no_bytes_are_known_each_stretch_is_a_batch(
    cadence: Cadence, at: datetime, numbers: set[int], size: int | None
):
    missing = IntervalSet.of(
        Interval(cadence.shift(at, number), cadence.shift(at, number + 1)) for number in numbers
    )

    apart = [IntervalSet.of([interval]) for interval in batches(cadence, missing, size)]
    assert [*joined(cadence, missing, size, 0)] == apart


def test_late_hours_in_many_stretches_are_one_batch():
    hours = [*range(0, 96, 6), *range(1, 96, 6), *range(2, 60, 6)]
    late = IntervalSet.of_pairs((hour * 3600, (hour + 1) * 3600) for hour in hours)

    assert (len(late), Hourly().count(late)) == (16, 42)
    assert joined(Hourly(), late, 552, 20_000) == (late,)
    assert len(joined(Hourly(), late, 552, 10**8)) == 16
    assert {Hourly().count(stretches) for stretches in joined(Hourly(), late, 20, 20_000)} == {6, 9}
    (held,) = [interval for number, interval in enumerate(late) if number == 7]
    parts = joined(Hourly(), late, 552, 20_000, IntervalSet.of([held]))
    assert [len(stretches) for stretches in parts] == [7, 1, 8]


def test_a_batch_has_no_more_stretches_than_it_may():
    days_ = IntervalSet.of_pairs((2 * at * 86_400, (2 * at + 1) * 86_400) for at in range(120))

    assert [len(stretches) for stretches in joined(Daily(), days_, None, 1)] == [50, 50, 20]


def day(number: int) -> Interval:
    return Interval(
        datetime(2024, 1, number, tzinfo=UTC), datetime(2024, 1, number + 1, tzinfo=UTC)
    )


def test_an_open_last_cell_stays_open():
    noon = datetime(2024, 1, 3, 12, tzinfo=UTC)
    missing = IntervalSet.of([Interval(day(1).start, noon)])

    assert batches(Daily(), missing) == (Interval(day(1).start, noon),)
    assert batches(Daily(), missing, 1) == (day(1), day(2), Interval(day(3).start, noon))


def test_a_blocked_cell_holds_only_its_batch_unless_they_go_in_order():
    three, blocked = [day(1), day(2), day(3)], IntervalSet.of([day(2)])

    assert unblocked(three, blocked) == (day(1), day(3))
    assert unblocked(three, blocked, in_order=True) == (day(1),)


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_refused(limit: int):
    with pytest.raises(DeclarationError, match="but must be at least 1"):
        batches(Daily(), IntervalSet.of([day(1)]), limit)
