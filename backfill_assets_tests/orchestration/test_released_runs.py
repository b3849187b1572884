"""Releases as runs: cells named in tags are read back, and names tell releases apart."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import dagster as dg
import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals import Cadence, Daily, Hourly, IntervalSet, Monthly, Weekly
from backfill_assets.orchestration.building import build_definitions
from backfill_assets.orchestration.released_runs import (
    Tried,
    cells_of_text,
    cells_text,
    name_of,
    own_checks,
    run_request,
)
from backfill_assets.planning.queue.releasing import Release, ReleaseKind
from backfill_assets_tests.builders import a_graph, a_model, days

CADENCES = [
    Hourly(start="2024-03-28", tz="Europe/Berlin"),  # over the night that lacks an hour
    Hourly(start="2024-10-26", tz="Europe/Berlin"),  # and the one that has one twice
    Daily(start="2024-03-28", tz="Europe/Berlin"),
    Weekly(start="2024-01-01"),
    Monthly(start="2024-01-01"),
]
GRAPH = a_graph(a_model("web.visits"))
NOW = datetime(2024, 6, 1, tzinfo=UTC)


@given(st.sampled_from(CADENCES), st.sets(st.integers(0, 80), min_size=1))
def test_cells_that_a_tag_names_are_read_back(cadence: Cadence, numbers: set[int]):
    assert cadence.start is not None
    starts = [cadence.shift(cadence.start, number) for number in numbers]
    cells = IntervalSet.of(
        cell
        for start in starts
        for cell in cadence.cells(IntervalSet.of_pairs([_pair(cadence, start)]))
    )

    assert cells_of_text(cadence, cells_text(cadence, cells)) == cells


def _pair(cadence: Cadence, start: datetime) -> tuple[int, int]:
    return int(start.timestamp()), int(cadence.next(start).timestamp())


def test_a_release_of_other_cells_another_plan_or_another_reason_is_another_one():
    releases = [
        Release("prod", ReleaseKind.DAILY, "web.visits", days(1)),
        Release("prod", ReleaseKind.DAILY, "web.visits", days(2)),
        Release("prod", ReleaseKind.BACKFILL, "web.visits", days(1)),
        Release("plan:p", ReleaseKind.PLAN, "web.visits", days(1), "p"),
        Release("plan:q", ReleaseKind.PLAN, "web.visits", days(1), "q"),
        Release("prod", ReleaseKind.FINISH, plan_id="p"),
        Release("prod", ReleaseKind.LATE, mark="a"),
        Release("prod", ReleaseKind.LATE, mark="b"),
    ]

    assert len({name_of(GRAPH, release) for release in releases}) == len(releases)
    assert len({run_request(GRAPH, release).run_key for release in releases}) == len(releases)


def test_checks_of_a_project_are_evaluated_with_the_models_own_unless_a_plan_is_built():
    visits = dg.AssetKey(["web", "visits"])

    @dg.asset_check(asset=visits)
    def as_usual() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    @dg.multi_asset_check(
        specs=[dg.AssetCheckSpec("alike", asset=visits), dg.AssetCheckSpec("alike", asset="other")]
    )
    def of_two_assets() -> Iterator[dg.AssetCheckResult]:
        yield from ()

    made = build_definitions(models=GRAPH.models.values(), sources=GRAPH.sources.values())
    own = dg.Definitions(asset_checks=[as_usual, of_two_assets])
    repository = dg.Definitions.merge(made, own).get_repository_def()

    def asked(release: Release) -> set[str]:
        request = run_request(GRAPH, release, repository)
        return {key.name for key in request.asset_check_keys or ()}

    daily = asked(Release("prod", ReleaseKind.DAILY, "web.visits", days(1)))
    plan = asked(Release("plan:p", ReleaseKind.PLAN, "web.visits", days(1), "p"))

    assert daily - plan == {"as_usual"}
    assert plan == {key.name for key in own_checks(GRAPH, "web.visits")}


@pytest.mark.parametrize(("times", "minutes"), [(1, 0), (2, 1), (3, 2), (4, 4), (20, 60)])
def test_what_ends_for_nothing_rests_longer_each_time_and_an_hour_at_most(times: int, minutes: int):
    assert Tried(times, NOW).rests_until == NOW + timedelta(minutes=minutes)
