"""Random intervals, instants and cadences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from backfill_assets.intervals import Cadence, Interval, Unit

BASE = datetime(2024, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURS = 60

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "America/Havana",  # repeats midnight
    "America/Sao_Paulo",  # once skipped it
    "Australia/Lord_Howe",  # moves clocks by half an hour
]

pairs = st.lists(
    st.tuples(st.integers(0, HOURS), st.integers(0, HOURS))
    .filter(lambda pair: pair[0] != pair[1])
    .map(lambda pair: (min(pair), max(pair))),
    max_size=8,
)

instants = st.integers(
    int(datetime(2016, 1, 1, tzinfo=UTC).timestamp()),
    int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()),
).map(lambda second: datetime.fromtimestamp(second, UTC))

cadences = st.builds(
    Cadence,
    unit=st.sampled_from([unit for unit in Unit if unit is not Unit.WHOLE]),
    tz=st.sampled_from(ZONES),
)


def hour(number: int) -> datetime:
    """The instant that many hours after the base."""
    return BASE + number * HOUR


def span(start: int, end: int) -> Interval:
    """From one hour to another."""
    return Interval(hour(start), hour(end))
