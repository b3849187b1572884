from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals import (
    WHOLE_CELL,
    Cadence,
    Daily,
    IntervalSet,
    Monthly,
    Unit,
    Whole,
)
from backfill_assets.intervals.required import (
    missing,
    required,
)
from backfill_assets.intervals.text import ranges_text
from backfill_assets_tests.intervals.strategies import ZONES, instants

NOW = datetime(2024, 3, 10, 12, tzinfo=UTC)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)


def keys(cadence: Cadence, cells: IntervalSet) -> str:
    return ranges_text(cadence, cells)


def test_history_runs_from_the_models_start_to_the_last_cell_that_is_over():
    daily = Daily(start="2024-03-01")

    assert keys(daily, required(daily, now=NOW)) == ("2024-03-01..2024-03-09 (9)")


def test_the_models_end_bounds_history():
    daily = Daily(start="2024-03-01", end="2024-03-04")

    assert keys(daily, required(daily, now=NOW)) == ("2024-03-01..2024-03-04 (4)")


def test_a_requested_range_rounds_outward():
    daily = Daily(start="2024-01-01")
    cells = required(daily, start=utc(2024, 3, 1, 5), end=utc(2024, 3, 3, 1), now=NOW)

    assert keys(daily, cells) == "2024-03-01..2024-03-03 (3)"


def test_nothing_past_the_requested_end_when_bounded():
    monthly = Monthly(start="2023-01-01")
    start, end = utc(2023, 1, 1), utc(2023, 2, 11)
    loose = required(monthly, start=start, end=end, now=NOW)
    strict = required(monthly, start=start, end=end, now=NOW, end_bounded=True)

    assert keys(monthly, loose) == "2023-01-01..2023-02-01 (2)"
    assert keys(monthly, strict) == "2023-01-01"


def test_a_range_shorter_than_a_cell_requires_none():
    daily = Daily(start="2024-01-01")

    assert not required(daily, start=utc(2024, 3, 1, 5), end=utc(2024, 3, 1, 9), now=NOW)


def test_a_short_local_day_is_a_whole_cell():
    daily = Daily(start="2024-01-01", tz="Europe/Berlin")
    day = daily.cell("2024-03-31")

    cells = required(daily, start=day.start, end=day.end, now=utc(2024, 5, 1))

    assert list(cells) == [day]


def test_cells_wait_for_the_cron_unless_it_is_ignored():
    daily = Daily(start="2024-03-08", cron="0 18 * * *")

    assert keys(daily, required(daily, now=NOW)) == "2024-03-08"
    everything = required(daily, now=NOW, ignore_cron=True)
    assert keys(daily, everything) == "2024-03-08..2024-03-09 (2)"


def test_an_unknown_start_never_means_infinite_history():
    with pytest.raises(DeclarationError, match="the model has no start"):
        required(Daily(), now=NOW)


def test_a_model_rebuilt_as_a_whole_requires_its_one_cell():
    whole = IntervalSet.of([WHOLE_CELL])

    assert required(Whole(), now=NOW) == whole
    assert missing(Whole(), whole, IntervalSet.empty()) == whole
    assert not missing(Whole(), whole, whole)


def test_a_cell_is_missing_unless_wholly_ready_anywhere_in_history():
    daily = Daily(start="2024-03-01")
    cells = required(daily, now=NOW)
    half = IntervalSet.of_pairs([(int(utc(2024, 3, 5, 12).timestamp()), 2_000_000_000)])
    ready = IntervalSet.of([daily.cell("2024-03-02")]) | half

    assert keys(daily, missing(daily, cells, ready)) == "2024-03-01, 2024-03-03..2024-03-05 (3)"


@given(
    st.sampled_from([Unit.DAY, Unit.WEEK, Unit.MONTH]),
    st.sampled_from(ZONES),
    st.lists(instants, min_size=5, max_size=5),
    st.fixed_dictionaries({"ignore_cron": st.booleans(), "end_bounded": st.booleans()}),
)
def test_required_cells_are_whole_due_and_asked_for(
    unit: Unit, zone: str, moments: list[datetime], flags: dict[str, Any]
):
    start, first, end, last, now = sorted(moments[:4]) + moments[4:]
    if end == last:
        return
    cadence = Cadence(unit, zone, start, last, cron="0 7 * * *")
    cells = required(
        cadence,
        start=first,
        end=end,
        now=now,
        ignore_cron=flags["ignore_cron"],
        end_bounded=flags["end_bounded"],
    )

    assert cadence.snap_in(cells) == cells
    for cell in cells:
        assert cadence.floor(first) <= cell.start
        assert cell.end <= cadence.ceil(last)
        assert cell.end <= (now if flags["ignore_cron"] else cadence.due(now))
        assert not flags["end_bounded"] or cell.end <= end
