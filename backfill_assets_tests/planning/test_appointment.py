"""When a plan is to be promoted, as people write it: the next such time by the clocks of a zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import RequestError
from backfill_assets.intervals.zones import UnknownZoneError
from backfill_assets.planning.review.appointment import next_time

FRIDAY = datetime(2026, 3, 27, 12, 30, tzinfo=UTC)
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("Sun 03:00", "2026-03-29T03:00Z"),
        ("sunday 04:15", "2026-03-29T04:15Z"),
        ("SUND 04:15", "2026-03-29T04:15Z"),
        ("Fri 12:30", "2026-04-03T12:30Z"),
        ("12:30", "2026-03-28T12:30Z"),
        ("23:00 Europe/Berlin", "2026-03-27T22:00Z"),
        ("Sun 02:30 Europe/Berlin", "2026-03-29T01:30Z"),  # clocks skip it
        ("2026-03-28T06:00:00+02:00", "2026-03-28T04:00Z"),
    ],
)
def test_a_time_is_the_next_one_that_people_mean(text: str, at: str):
    assert next_time(text, FRIDAY) == datetime.fromisoformat(at)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "Sun",
        "25:00",
        "Sux 03:00",
        "Monthly 03:00",
        "Sunset 21:00",
        "2026-03-28",
        "2026-03-28T06:00",
    ],
)
def test_a_text_that_names_no_time_is_refused(text: str):
    with pytest.raises(RequestError, match="can't be read; expected a weekday and a time"):
        next_time(text, FRIDAY)


def test_an_instant_that_is_past_and_a_zone_that_is_none_are_refused():
    with pytest.raises(RequestError, match="is in the past; expected an instant in the future"):
        next_time("2026-03-27T12:30:00Z", FRIDAY)
    with pytest.raises(UnknownZoneError, match="Berlin/Europe"):
        next_time("03:00 Berlin/Europe", FRIDAY)


@given(
    now=st.integers(1_577_836_800, 1_893_456_000).map(lambda at: datetime.fromtimestamp(at, UTC)),
    zone=st.sampled_from(ZONES),
    day=st.sampled_from(DAYS),
    minutes=st.integers(0, 24 * 60 - 1),
)
def test_the_next_time_of_a_weekday_is_the_first_minute_whose_clocks_show_it(
    now: datetime, zone: str, day: str, minutes: int
):
    clock = f"{minutes // 60:02}:{minutes % 60:02}"

    found = next_time(f"{day} {clock} {zone}", now)

    local = found.astimezone(ZoneInfo(zone))
    shown = f"{DAYS[local.weekday()]} {local:%H:%M}"
    skipped = (
        local.astimezone(UTC).astimezone(ZoneInfo(zone)).utcoffset()
        != (found - timedelta(hours=2)).astimezone(ZoneInfo(zone)).utcoffset()
    )
    assert now < found <= now + timedelta(days=7, hours=2)
    assert shown == f"{day} {clock}" or skipped
