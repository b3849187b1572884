from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backfill_assets.intervals import Daily, Interval, IntervalSet
from backfill_assets.intervals.restated import onward, restated

DAILY = Daily(start="2024-01-01")
NOW = datetime(2024, 1, 11, 5, tzinfo=UTC)


@pytest.mark.parametrize(("in_order", "last"), [(False, 5), (True, 11)])
def test_a_restatement_reaches_as_far_as_an_error_does(*, in_order: bool, last: int):
    hour = Interval(*(datetime(2024, 1, 5, at, tzinfo=UTC) for at in (7, 8)))

    wrong = restated(DAILY, hour, in_order=in_order, now=NOW)

    days = [DAILY.key(cell) for cell in DAILY.cells(wrong)]
    assert (days[0], days[-1]) == ("2024-01-05", f"2024-01-{last:02}")


@pytest.mark.parametrize(("in_order", "count"), [(False, 2), (True, 0)])
def test_a_reach_beyond_what_was_asked_ends_now(*, in_order: bool, count: int):
    to_come = Interval(*(datetime(2024, 2, day, tzinfo=UTC) for day in (1, 3)))

    wrong = restated(DAILY, to_come, in_order=in_order, now=NOW)

    assert DAILY.count(wrong) == count


def test_what_reads_earlier_cells_is_wrong_from_the_first_wrong_one_to_the_end_of_a_life_with_holes():
    first, second, third = (IntervalSet.of([DAILY.cell(f"2024-01-{day:02}")]) for day in (2, 5, 9))

    assert onward(second, first | second | third) == second | third
    assert onward(IntervalSet.empty(), first | second) == IntervalSet.empty()
