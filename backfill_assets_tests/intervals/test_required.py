from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals import (
    WHOLE_CELL,
    Cadence,
    Daily,
    IntervalSet,
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
    unit=st.sampled_from([Unit.DAY, Unit.WEEK, Unit.MONTH]),
    zone=st.sampled_from(ZONES),
    moments=st.lists(instants, min_size=3, max_size=3),
    ignore_cron=st.booleans(),
)
def test_required_cells_are_whole_and_due(
    unit: Unit, zone: str, moments: list[datetime], *, ignore_cron: bool
):
    start, last, now = sorted(moments[:2]) + moments[2:]
    if start == last:
        return
    cadence = Cadence(unit, zone, start, last, cron="0 7 * * *")
    cells = required(cadence, now=now, ignore_cron=ignore_cron)

    assert cadence.snap_in(cells) == cells
    for cell in cells:
        assert cadence.floor(start) <= cell.start
        assert cell.end <= cadence.ceil(last)
        assert cell.end <= (now if ignore_cron else cadence.due(now))
