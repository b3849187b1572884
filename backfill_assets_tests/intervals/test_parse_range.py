from __future__ import annotations

from datetime import UTC, datetime

import pytest

from backfill_assets.intervals import Daily, Hourly, Interval, Monthly
from backfill_assets.intervals.instants import InstantFormatError
from backfill_assets.intervals.parse_range import (
    OutsideLifeError,
    ReversedRangeError,
    parse_range,
)

BERLIN = Daily(start="2024-01-01", tz="Europe/Berlin", end="2024-12-31")
UTC_DAILY = Daily(start="2024-01-01")


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def test_dates_are_whole_days_of_the_models_zone():
    found = parse_range("2024-01-01", "2024-01-31", BERLIN)

    assert found.interval == Interval(utc(2023, 12, 31, 23), utc(2024, 1, 31, 23))
    assert found.note is None


def test_an_instant_as_end_is_exclusive():
    found = parse_range("2024-01-01", "2024-01-03T00:00:00Z", UTC_DAILY)

    assert found.interval == Interval(utc(2024, 1, 1), utc(2024, 1, 3))
    assert found.note is None


def test_misaligned_instants_round_outward_with_a_note():
    found = parse_range("2024-01-01T06:00Z", "2024-01-03T06:00+01:00", UTC_DAILY)

    assert found.interval == Interval(utc(2024, 1, 1), utc(2024, 1, 4))
    assert found.asked == Interval(utc(2024, 1, 1, 6), utc(2024, 1, 3, 5))
    assert found.note == ("rounded outward to whole cells of one day: 2024-01-01..2024-01-03 (3)")


def test_dates_within_a_month_mean_the_month():
    found = parse_range("2024-02-05", "2024-02-10", Monthly(start="2024-01-01"))

    assert found.interval == Interval(utc(2024, 2, 1), utc(2024, 3, 1))
    assert "rounded outward" in (found.note or "")


def test_a_range_that_only_overlaps_the_life_is_clipped_with_a_note():
    found = parse_range("2023-06-01", "2024-01-02", UTC_DAILY)

    assert found.interval == Interval(utc(2024, 1, 1), utc(2024, 1, 3))
    assert (found.note or "").startswith("clipped to the model's life: 2024-01-01..2024-01-02 (2)")


@pytest.mark.parametrize(
    ("asked", "note"),
    [
        ((None, None), None),
        (("2024-01-05", None), None),
        (("2024-01-05T06:00Z", None), "rounded outward to whole cells of one day: 2024-01-05..2024-01-09 (5)"),
        (("2020-01-01", None), "clipped to the model's life: 2024-01-01..2024-01-09 (9)"),
        ((None, "2024-01-04"), None),
        (("2024-01-08", "2024-01-20"), "without cells that are not due yet: 2024-01-08..2024-01-09 (2)"),
        (("2024-01-10", "2024-01-10"), "no cell of it is due yet"),
        (("2024-01-10", None), "no cell of it is due yet"),
    ],
)  # fmt: skip
def test_a_bound_that_is_not_asked_for_is_that_of_the_life_and_only_a_change_is_noted(
    asked: tuple[str | None, str | None], note: str | None
):
    """At noon of the 10th, nine days are over."""
    assert parse_range(*asked, UTC_DAILY, due=utc(2024, 1, 10)).note == note


@pytest.mark.parametrize("asked", [(None, "2023-12-31"), ("2025-01-01", None)])
def test_one_bound_outside_the_life_is_refused_as_a_range_outside_it(
    asked: tuple[str | None, str | None],
):
    with pytest.raises(OutsideLifeError, match="lies wholly outside the model's life"):
        parse_range(*asked, BERLIN, due=utc(2026, 1, 1))


@pytest.mark.parametrize(
    "days",
    [
        ("2023-01-01", "2023-12-31"),
        ("2025-01-01", "2025-02-01"),
        ("2023-01-01T06:00:00.25Z", "2023-12-31"),
    ],
)
def test_a_range_wholly_outside_the_life_is_refused(days: tuple[str, str]):
    with pytest.raises(OutsideLifeError, match="lies wholly outside the model's life"):
        parse_range(*days, BERLIN)


def test_a_range_outside_the_life_is_told_in_cells_of_the_model():
    with pytest.raises(OutsideLifeError) as caught:
        parse_range(
            "2025-01-01", "2025-01-31", Daily(start="2024-01-01", end="2024-12-31", tz="Asia/Tokyo")
        )

    assert str(caught.value) == (
        "the range 2025-01-01..2025-01-31 (31) lies wholly outside the model's life, which is "
        "2024-01-01..2024-12-31 (366); ask for a range within it"
    )


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2024-02-01", "2024-01-01"),
        ("2024-02-01T00:00Z", "2024-02-01T00:00Z"),
        ("2024-02-02", "2024-02-01"),
    ],
)
def test_a_reversed_range_is_refused(start: str, end: str):
    with pytest.raises(ReversedRangeError, match="earlier bound first"):
        parse_range(start, end, UTC_DAILY)


@pytest.mark.parametrize("text", ["yesterday", "2024-1-1", "2024-01-01T10:00", "2024-01", ""])
def test_a_bound_that_cannot_be_read_is_refused(text: str):
    with pytest.raises(InstantFormatError, match="2024-01-31T06:00:00Z"):
        parse_range(text, "2024-02-01", UTC_DAILY)


def test_instants_closer_than_a_cell_say_so_and_require_none():
    found = parse_range("2024-01-01T06:00Z", "2024-01-01T08:00Z", UTC_DAILY)

    assert found.note == "shorter than one cell of one day, so it requires none"
    assert not UTC_DAILY.snap_in(found.interval)


def test_only_what_lies_after_the_models_start_counts_for_that():
    found = parse_range("2023-12-01", "2024-01-01T08:00Z", UTC_DAILY)

    assert (found.note or "").startswith("shorter than one cell")
    assert found.interval == Interval(utc(2024, 1, 1), utc(2024, 1, 1, 8))


def test_one_hour_can_be_asked_for_by_instants():
    found = parse_range("2024-01-01T06:00Z", "2024-01-01T07:00Z", Hourly(start="2024-01-01"))

    assert found.note is None
