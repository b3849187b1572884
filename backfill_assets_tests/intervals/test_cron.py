from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals import Cadence, Unit
from backfill_assets.intervals.cron import Cron, unit_of_cron
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
    assert cron.previous(at) < at
    assert cron.previous(cron.floor(at)) < cron.floor(at)


@pytest.mark.parametrize(
    ("expression", "unit"),
    [
        ("*/5 * * * *", Unit.MINUTE5),
        ("*/10 * * * *", Unit.MINUTE5),
        ("*/15 * * * *", Unit.MINUTE15),
        ("*/30 * * * *", Unit.MINUTE30),
        ("0,20 * * * *", Unit.MINUTE15),
        ("@hourly", Unit.HOUR),
        ("0 */6 * * *", Unit.HOUR),
        ("@daily", Unit.DAY),
        ("0 9 * * 1-5", Unit.DAY),
        ("0 0 1,15 * *", Unit.DAY),
        ("@weekly", Unit.DAY),
        ("0 7 * * 1", Unit.DAY),
        ("@monthly", Unit.MONTH),
        ("0 0 1 */3 *", Unit.MONTH),
        ("0 0 1 1,7 *", Unit.MONTH),
        ("@yearly", Unit.YEAR),
        ("0 0 29 2 *", Unit.YEAR),
    ],
)
def test_the_unit_is_the_largest_that_fits_between_ticks(expression: str, unit: Unit):
    assert unit_of_cron(expression) is unit
    assert Cadence.of_cron(expression).unit is unit


def test_a_cron_below_five_minutes_is_refused():
    with pytest.raises(DeclarationError, match="smallest cell is 5 minutes"):
        unit_of_cron("* * * * *")


def test_cron_ticks_on_the_clocks_of_its_zone():
    before, after = datetime(2024, 3, 30, 12, tzinfo=UTC), datetime(2024, 4, 1, 12, tzinfo=UTC)
    cron = Cron("0 5 * * *", "Europe/Berlin")

    assert (cron.floor(before).hour, cron.floor(after).hour) == (4, 3)
