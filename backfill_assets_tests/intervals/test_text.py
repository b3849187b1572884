from __future__ import annotations

from datetime import UTC, datetime, timedelta

from backfill_assets.intervals import (
    WHOLE_CELL,
    Daily,
    Hourly,
    Interval,
    IntervalSet,
    Whole,
)
from backfill_assets.intervals.text import first_of, ranges_list, ranges_text

DAY = timedelta(days=1)


def days(*runs: tuple[int, int]) -> IntervalSet:
    first = datetime(2024, 1, 1, tzinfo=UTC)
    return IntervalSet.of(Interval(first + a * DAY, first + b * DAY) for a, b in runs)


def test_runs_are_printed_with_both_ends_and_their_count():
    assert ranges_text(Daily(), days((0, 31), (35, 36))) == (
        "2024-01-01..2024-01-31 (31), 2024-02-05"
    )


def test_more_runs_than_the_limit_are_counted():
    runs = days((0, 1), (2, 4), (6, 9), (11, 12))

    assert ranges_text(Daily(), runs, limit=2) == (
        "2024-01-01, 2024-01-03..2024-01-04 (2), and 2 more ranges (4)"
    )
    assert ranges_text(Daily(), runs, limit=3).endswith("and 1 more range (1)")


def test_a_program_is_given_every_run_however_many_there_are():
    runs = days(*((2 * at, 2 * at + 1) for at in range(40)), (90, 93))

    listed = ranges_list(Daily(), runs)

    assert (len(listed), listed[1], listed[-1]) == (41, "2024-01-03", "2024-03-31..2024-04-02")
    assert ranges_list(Daily(), IntervalSet.empty()) == []
    assert ranges_list(Whole(), IntervalSet.of([WHOLE_CELL])) == ["whole"]


def test_nothing_and_everything_have_words():
    assert ranges_text(Daily(), IntervalSet.empty()) == "none"
    assert ranges_text(Whole(), IntervalSet.of([WHOLE_CELL])) == "whole"


def test_hours_are_those_of_the_models_zone():
    hourly = Hourly(tz="Asia/Kolkata")

    assert ranges_text(hourly, IntervalSet.of(Daily(tz="Asia/Kolkata").cells(days((0, 1))))) == (
        "2024-01-01-00:00..2024-01-02-23:00 (48)"
    )


def test_names_beyond_the_limit_are_counted():
    assert [first_of("abc", limit) for limit in (2, 3)] == ["a, b and 1 more", "a, b, c"]
