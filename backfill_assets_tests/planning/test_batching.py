from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals import Cadence, Daily, Interval, IntervalSet
from backfill_assets.planning.batching import BatchLimitError, batches, unblocked, waits_for
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


def day(number: int) -> Interval:
    return Interval(
        datetime(2024, 1, number, tzinfo=UTC), datetime(2024, 1, number + 1, tzinfo=UTC)
    )


def test_an_open_last_cell_stays_open():
    noon = datetime(2024, 1, 3, 12, tzinfo=UTC)
    missing = IntervalSet.of([Interval(day(1).start, noon)])

    assert batches(Daily(), missing) == (Interval(day(1).start, noon),)
    assert batches(Daily(), missing, 1) == (day(1), day(2), Interval(day(3).start, noon))


def test_a_batch_waits_for_the_one_that_frees_its_place():
    four = [day(number) for number in (1, 2, 3, 4)]

    assert waits_for(four, 2) == ((), (), (0,), (1,))
    assert waits_for(four) == ((), (), (), ())
    assert waits_for(four, 3, in_order=True) == ((), (0,), (1,), (2,))


def test_a_blocked_cell_holds_only_its_batch_unless_they_go_in_order():
    three, blocked = [day(1), day(2), day(3)], IntervalSet.of([day(2)])

    assert unblocked(three, blocked) == (day(1), day(3))
    assert unblocked(three, blocked, in_order=True) == (day(1),)


@pytest.mark.parametrize("limit", [0, -3])
def test_a_limit_below_one_is_refused(limit: int):
    with pytest.raises(BatchLimitError, match="at least 1"):
        batches(Daily(), IntervalSet.of([day(1)]), limit)
    with pytest.raises(BatchLimitError, match="at least 1"):
        waits_for([day(1)], limit)
