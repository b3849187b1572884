from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval import Interval
from backfill_assets_tests.intervals.strategies import hour, span


def test_an_interval_is_kept_in_utc_whatever_zone_it_was_given_in():
    berlin = ZoneInfo("Europe/Berlin")
    day = Interval(datetime(2024, 3, 31, tzinfo=berlin), datetime(2024, 4, 1, tzinfo=berlin))

    assert day.start == datetime(2024, 3, 30, 23, tzinfo=UTC)
    assert day.start.tzinfo is UTC
    assert day.duration == timedelta(hours=23)


def test_an_instant_without_a_zone_is_refused():
    with pytest.raises(RequestError, match="has no time zone"):
        Interval(datetime(2024, 1, 1), datetime(2024, 1, 2, tzinfo=UTC))  # noqa: DTZ001


@pytest.mark.parametrize("end", [3, 2])
def test_an_empty_or_reversed_interval_is_refused(end: int):
    with pytest.raises(RequestError, match="never empty"):
        Interval(hour(3), hour(end))


def test_an_interval_contains_its_start_but_not_its_end():
    assert span(0, 2).contains(hour(0))
    assert not span(0, 2).contains(hour(2))
    assert span(0, 2).contains(span(1, 2))
    assert not span(0, 2).contains(span(1, 3))


def test_intervals_are_ordered_by_start_then_end():
    assert sorted([span(1, 3), span(0, 9), span(1, 2)]) == [span(0, 9), span(1, 2), span(1, 3)]
