"""The requested range of a plan, cut to a model's own zone, cells and life."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals import Cadence, Daily, IntervalSet, Monthly, Unit, Weekly
from backfill_assets.intervals.text import ranges_text
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.planning.plan.windows import window_of
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.intervals.strategies import ZONES, instants

NOW = datetime(2024, 6, 10, 12, tzinfo=UTC)


def cells(cadence: Cadence, start: str, end: str, now: datetime = NOW, **asked: Any) -> IntervalSet:  # noqa: ANN401
    request = PlanRequest(environment=PROD, start=start, end=end, **asked)
    return window_of(request, cadence, now, IntervalSet.empty()).cells


def keys(cadence: Cadence, start: str, end: str, **asked: Any) -> str:  # noqa: ANN401
    return ranges_text(cadence, cells(cadence, start, end, **asked))


def test_a_requested_range_rounds_outward():
    daily = Daily(start="2024-01-01")

    assert keys(daily, "2024-03-01T05:00Z", "2024-03-03T01:00Z") == "2024-03-01..2024-03-03 (3)"


@pytest.mark.parametrize("make", [Weekly, Monthly])
def test_dates_closer_together_than_a_cell_round_outward_too(make: Any):  # noqa: ANN401
    cadence = make(start="2024-01-01")

    found = cells(cadence, "2024-04-28", "2024-05-02")

    assert found == cadence.snap_out(
        cadence.cell("2024-04-29" if make is Weekly else "2024-04-01")
    ) | (cadence.snap_out(cadence.cell("2024-04-22" if make is Weekly else "2024-05-01")))


def test_instants_closer_together_than_a_cell_require_none():
    daily = Daily(start="2024-01-01")

    assert not cells(daily, "2024-03-01T05:00Z", "2024-03-01T09:00Z")


def test_nothing_past_the_requested_end_when_bounded():
    monthly = Monthly(start="2023-01-01")

    assert keys(monthly, "2023-01-01", "2023-02-10") == "2023-01-01..2023-02-01 (2)"
    assert keys(monthly, "2023-01-01", "2023-02-10", end_bounded=True) == "2023-01-01"


@pytest.mark.parametrize(
    ("bounded", "note"),
    [
        (False, "rounded outward to whole cells of one month: 2023-01-01..2023-02-01 (2)"),
        (True, "left out: 2023-02-01, which reaches past the requested end"),
    ],
)
def test_a_window_says_what_becomes_of_the_cell_that_the_requested_end_cuts(
    bounded: bool,  # noqa: FBT001
    note: str,
):
    request = PlanRequest(
        environment=PROD, start="2023-01-01", end="2023-02-10", end_bounded=bounded
    )

    window = window_of(request, Monthly(start="2023-01-01"), NOW, IntervalSet.empty())

    assert window.notes == (note,)


@pytest.mark.parametrize(
    ("ends", "last"), [(("2024-03-03", "2024-03-05"), "2024-03-05"), (("2024-03-03", None), None)]
)
def test_nothing_past_the_last_end_of_what_is_restated_when_bounded(
    ends: tuple[str | None, ...], last: str | None
):
    daily = Daily(start="2024-03-01")
    restated = tuple(Restatement("web.a", end=end) for end in ends)
    request = PlanRequest(environment=PROD, restate=restated, end_bounded=True)

    window = window_of(request, daily, NOW, IntervalSet.empty())

    assert window.life.span().end == (daily.due(NOW) if last is None else daily.cell(last).end)


def test_a_short_local_day_is_a_whole_cell():
    daily = Daily(start="2024-01-01", tz="Europe/Berlin")

    assert list(cells(daily, "2024-03-31", "2024-03-31")) == [daily.cell("2024-03-31")]


@given(
    st.sampled_from([Unit.DAY, Unit.WEEK, Unit.MONTH]),
    st.sampled_from(ZONES),
    st.lists(instants, min_size=5, max_size=5),
    st.fixed_dictionaries({"ignore_cron": st.booleans(), "end_bounded": st.booleans()}),
)
def test_requested_cells_are_whole_due_and_asked_for(
    unit: Unit, zone: str, moments: list[datetime], flags: dict[str, Any]
):
    start, first, end, last, now = sorted(moments[:4]) + moments[4:]
    if start == last:
        return
    cadence = Cadence(unit, zone, start, last, cron="0 7 * * *")
    try:
        found = cells(cadence, first.isoformat(), end.isoformat(), now, **flags)
    except BackfillAssetsError:  # of no time, outside of the life, or in the future
        return

    assert cadence.snap_in(found) == found
    for cell in found:
        assert cadence.floor(first) <= cell.start
        assert cell.end <= cadence.ceil(end)
        assert cell.end <= (now if flags["ignore_cron"] else cadence.due(now))
        assert not flags["end_bounded"] or cell.end <= end
