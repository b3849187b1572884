from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backfill_assets.intervals import Daily, Interval, IntervalSet
from backfill_assets.intervals.restated import Reach, restated

DAILY = Daily(start="2024-01-01")
READY = IntervalSet.of([Interval(*(datetime(2024, 1, day, tzinfo=UTC) for day in (2, 11)))])
NOW = datetime(2024, 1, 11, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("reach", "first", "last"),
    [(Reach.CELLS, 5, 5), (Reach.ONWARD, 5, 11), (Reach.HISTORY, 2, 11)],
)
def test_a_restatement_reaches_as_far_as_an_error_does(reach: Reach, first: int, last: int):
    hour = Interval(*(datetime(2024, 1, 5, at, tzinfo=UTC) for at in (7, 8)))

    wrong = restated(DAILY, hour, reach=reach, ready=READY, now=NOW)

    days = [DAILY.key(cell) for cell in DAILY.cells(wrong)]
    assert (days[0], days[-1]) == (f"2024-01-{first:02}", f"2024-01-{last:02}")


@pytest.mark.parametrize(
    ("reach", "count"), [(Reach.CELLS, 2), (Reach.ONWARD, 0), (Reach.HISTORY, 0)]
)
def test_a_reach_beyond_what_was_asked_ends_now(reach: Reach, count: int):
    to_come = Interval(*(datetime(2024, 2, day, tzinfo=UTC) for day in (1, 3)))

    wrong = restated(DAILY, to_come, reach=reach, ready=READY, now=NOW)

    assert DAILY.count(wrong) == count


def test_a_restated_history_is_all_that_is_held():
    asked = Interval(*(datetime(2023, 12, day, tzinfo=UTC) for day in (1, 3)))

    wrong = restated(DAILY, asked, reach=Reach.HISTORY, ready=READY, now=NOW)

    assert list(wrong) == [Interval(*(datetime(2024, 1, day, tzinfo=UTC) for day in (2, 12)))]
