from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals.durations import doubled, duration_text, read_duration

UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}


@given(st.integers(1, 9999), st.sampled_from("mhd"))
def test_a_duration_is_a_number_of_minutes_hours_or_days(number: int, unit: str):
    assert read_duration(f"{number}{unit}") == timedelta(seconds=number * UNITS[unit])


@pytest.mark.parametrize("text", ["", "6", "h", "0h", "1.5h", "-3d", "99999d", "24 hours", "6s"])
def test_what_is_no_duration_is_not_guessed_at(text: str):
    assert read_duration(text) is None


@given(st.integers(0, 10**9))
def test_a_written_duration_says_every_second(seconds: int):
    text = duration_text(timedelta(seconds=seconds))

    assert sum(int(part[:-1]) * UNITS[part[-1]] for part in text.split()) == seconds


def test_a_pause_doubles_up_to_the_longest_one():
    minute, hour = timedelta(minutes=1), timedelta(hours=1)
    pauses = [doubled(minute, times, hour) for times in (-1, 0, 1, 2, 6, 10_000)]
    assert pauses == [minute, minute, 2 * minute, 4 * minute, hour, hour]
