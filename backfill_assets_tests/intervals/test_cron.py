from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals import Daily
from backfill_assets.intervals.cron import Cron
from backfill_assets.intervals.zones import UnknownZoneError
from backfill_assets_tests.intervals.strategies import instants

EXPRESSIONS = [
    "@hourly",
    "@daily",
    "@weekly",
    "@monthly",
    "0 5 * * *",
    "*/15 * * * *",
    "0 9 * * 1-5",
]


@given(
    st.sampled_from(EXPRESSIONS),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    instants,
    st.integers(0, 999_999),
)
def test_the_last_tick_is_at_or_before_and_the_next_after(
    expression: str, zone: str, instant: datetime, fraction: int
):
    cron, at = Cron(expression, zone), instant + timedelta(microseconds=fraction)

    assert cron.floor(at) <= at < cron.next(at)
    assert cron.floor(cron.floor(at)) == cron.floor(at)


def test_cron_ticks_on_the_clocks_of_its_zone():
    before, after = datetime(2024, 3, 30, 12, tzinfo=UTC), datetime(2024, 4, 1, 12, tzinfo=UTC)
    cron = Cron("0 5 * * *", "Europe/Berlin")

    assert (cron.floor(before).hour, cron.floor(after).hour) == (4, 3)


@pytest.mark.parametrize("expression", ["0 25 * * *", "a b c d e", "0 0 5 * * *", "@sometimes", ""])
def test_what_is_no_cron_of_five_fields_is_refused(expression: str):
    with pytest.raises(DeclarationError, match="give five fields"):
        Cron(expression)


def test_a_cron_on_the_clocks_of_no_zone_is_refused_when_it_is_declared():
    with pytest.raises(UnknownZoneError, match=r"'Mars/Olympus'"):
        Daily(cron="0 5 * * *", cron_tz="Mars/Olympus")
