from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals.zones import UnknownZoneError
from backfill_assets.planning.queue.off_peak import InvalidOffPeakError, OffPeak, read_off_peak

ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]
)
MINUTES = st.integers(0, 24 * 60 - 1)
INSTANTS = st.datetimes(
    datetime(2024, 1, 1), datetime(2027, 1, 1), timezones=st.just(UTC)  # noqa: DTZ001
)  # fmt: skip
# Around the nights on which clocks move somewhere.
MOVES = st.sampled_from(
    [
        datetime(2024, 3, 31, 1, tzinfo=UTC), datetime(2024, 10, 27, 1, tzinfo=UTC),
        datetime(2024, 3, 10, 7, tzinfo=UTC), datetime(2024, 11, 3, 6, tzinfo=UTC),
        datetime(2024, 4, 6, 15, tzinfo=UTC), datetime(2024, 10, 5, 15, 30, tzinfo=UTC),
    ]
)  # fmt: skip
NEAR = st.builds(lambda at, by: at + timedelta(seconds=by), MOVES, st.integers(-90_000, 90_000))
WINDOWS = st.builds(
    lambda opens, lasts, zone: OffPeak(opens * 60, (opens + lasts) % 1440 * 60, zone),
    MINUTES,
    st.integers(1, 1439),
    ZONES,
)


@given(WINDOWS, INSTANTS | NEAR)
def test_a_window_is_open_when_clocks_on_the_wall_say_so(window: OffPeak, instant: datetime):
    wall = instant.astimezone(ZoneInfo(window.zone)).time()
    opens, closes = (time(at // 3600, at % 3600 // 60) for at in (window.opens, window.closes))
    over_midnight = closes <= opens
    inside = wall >= opens or wall < closes if over_midnight else opens <= wall < closes
    assert window.covers(instant) == inside


@given(WINDOWS)
def test_a_window_is_read_back_as_it_is_written(window: OffPeak):
    assert read_off_peak(str(window)) == window


@given(WINDOWS, INSTANTS | NEAR)
def test_what_one_window_covers_the_rest_of_the_day_does_not(window: OffPeak, instant: datetime):
    rest = OffPeak(window.closes, window.opens, window.zone)
    assert window.covers(instant) != rest.covers(instant)


def test_a_window_over_midnight_is_open_on_both_sides_of_it():
    window = read_off_peak("22:00-06:00  Europe/Berlin")

    def covers(hour: int, minute: int = 0) -> bool:
        return window.covers(datetime(2024, 7, 1, hour, minute, tzinfo=UTC))

    assert [hour for hour in range(24) if covers(hour)] == [0, 1, 2, 3, 20, 21, 22, 23]
    assert (covers(19, 59), covers(3, 59)) == (False, True)


def test_a_window_opens_with_its_first_minute_and_is_closed_at_its_last():
    window = read_off_peak("01:00-03:00 UTC")
    times = [(0, 59), (1, 0), (2, 59), (3, 0)]

    assert [window.covers(datetime(2024, 7, 1, *at, tzinfo=UTC)) for at in times] == [
        False, True, True, False,
    ]  # fmt: skip


def test_a_whole_day_but_its_last_hours_ends_at_midnight():
    window = read_off_peak("06:00-24:00 UTC")
    assert window == OffPeak(6 * 3600, 0, "UTC")
    assert window.covers(datetime(2024, 1, 1, 23, 59, tzinfo=UTC))
    assert not window.covers(datetime(2024, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "text",
    [
        "", "night", "22:00-06:00", "22-06 UTC", "22:00-22:00 UTC", "00:00-24:00 UTC",
        "24:00-06:00 UTC", "25:00-06:00 UTC", "22:60-06:00 UTC", "22:00-24:01 UTC",
        "-1:00-06:00 UTC", "22:00-06:00 UTC now", "\u0662\u0662:00-06:00 UTC",
    ],
)  # fmt: skip
def test_a_malformed_window_is_refused_with_an_example(text: str):
    with pytest.raises(InvalidOffPeakError, match=r"'22:00-06:00 Europe/Berlin'"):
        read_off_peak(text)


def test_a_window_in_a_zone_that_is_not_there_is_refused():
    with pytest.raises(UnknownZoneError):
        read_off_peak("22:00-06:00 Europe/Atlantis")
