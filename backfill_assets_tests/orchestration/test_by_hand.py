"""Published cells that are launched by hand: a plan of their own, waiting at its gate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from backfill_assets import build_definitions
from backfill_assets.engine.automatic import by_hand
from backfill_assets.engine.plans.plan_verbs import apply_plan, promote_plan
from backfill_assets.engine.project.opening import open_run
from backfill_assets.models.graph import build_graph
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.orchestration.catching_up import report_ready
from backfill_assets.orchestration.resources import StateResource, now
from backfill_assets.planning.plan.plan_json import FORMAT, read_plan
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.snapshots.stored_plan import PlanStatus, StoredPlan
from backfill_assets.state.plans import Plans
from backfill_assets_tests.making import plan_made
from backfill_assets_tests.orchestration.shop import (
    checks,
    failure,
    keys,
    lent,
    observed,
    told,
    waiting,
)
from backfill_assets_tests.orchestration.test_filling import ALL
from backfill_assets_tests.toy import DAYS, MODELS, SOURCES, sales

if TYPE_CHECKING:
    from backfill_assets_tests.orchestration.shop import Shop

SALES = ("toy.sales", "ds", "shop", "amount")
THREE = ("toy.sales_of_three_days", "ds", "amount")


def plans() -> list[tuple[str, PlanStatus]]:
    store = StateResource().store
    try:
        return [(plan.plan_id, plan.status) for plan in store.plans.latest()]
    finally:
        store.close()


def events(plan_id: str) -> list[str]:
    store = StateResource().store
    try:
        return [event.event for event in store.plans.events(plan_id)]
    finally:
        store.close()


def promote(shop: Shop, plan_id: str) -> None:
    state = StateResource()
    plan = read_plan(state.store.plans.get(plan_id).content)
    loaded = Loaded.of(build_graph(MODELS, SOURCES))
    promote_plan(state.project(loaded, "gate", lent(shop.spark), "ann"), plan)
    state.store.close()


def test_a_launch_over_published_cells_waits_as_one_plan_until_somebody_promotes_it(shop: Shop):
    assert shop.fill("toy.sales", "toy.sales_of_three_days", cells=ALL).success
    before = shop.published(*SALES), shop.published(*THREE)
    shop.sell("2024-01-30", "west", 7)

    result = shop.fill("toy.sales", "toy.sales_of_three_days", cells=ALL)

    assert result.success, failure(result)
    [(plan_id, status)] = plans()
    assert status is PlanStatus.BUILT
    for model in ("toy.sales", "toy.sales_of_three_days"):
        assert waiting(result, model) == {plan_id: list(DAYS)}
        assert observed(result, model) == []
    assert (shop.published(*SALES), shop.published(*THREE)) == before

    promote(shop, plan_id)

    after = shop.published(*SALES), shop.published(*THREE)
    assert set(after[0]) - set(before[0]) == {("2024-01-30", "west", 7)}
    assert [new[0] for new, old in zip(after[1], before[1], strict=True) if new != old] == [
        "2024-01-30",
        "2024-01-31",
        "2024-02-01",
    ]


def test_a_launch_that_is_stopped_says_which_plan_is_left_and_how_to_go_on_with_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
):
    def stopped(*_: object) -> None:
        raise dg.DagsterExecutionInterruptedError

    assert shop.fill("toy.sales", cells=ALL).success
    monkeypatch.setattr(by_hand, "carried_out", stopped)

    assert not shop.fill("toy.sales", cells=ALL).success

    [(plan_id, _)] = plans()
    [run] = shop.instance.get_runs(limit=1)
    said = " ".join(entry.user_message for entry in shop.instance.all_logs(run.run_id))
    for command in ("apply", "abandon"):
        assert f"`backfill {command} {plan_id}`" in said


def test_a_launch_whose_batches_all_fail_says_which_plan_is_left_and_of_no_cell_that_it_is_built(
    shop: Shop,
):
    assert shop.fill("toy.sales", cells=ALL).success
    shop.sell(DAYS[0], "west", -7)
    shop.sell(DAYS[-1], "west", -7)

    result = shop.fill("toy.sales", cells=ALL)

    [(plan_id, _)] = plans()
    said = failure(result)
    assert "amount_not_negative" in said
    for command in ("apply", "abandon"):
        assert f"`backfill {command} {plan_id}`" in said
    [run] = shop.instance.get_runs(limit=1)
    lines = [entry.user_message for entry in shop.instance.all_logs(run.run_id)]
    assert not [line for line in lines if "it is built" in line or line.startswith("told Dagster")]


def test_a_launch_in_which_nothing_turns_out_different_ends_by_itself(shop: Shop):
    assert shop.fill("toy.sales", cells=ALL).success
    before = shop.published(*SALES)

    result = shop.fill("toy.sales", cells=ALL)

    assert result.success, failure(result)
    assert sorted(map(str, keys(result, "toy.sales"))) == list(DAYS)
    [(plan_id, status)] = plans()
    assert status is PlanStatus.PROMOTED
    assert shop.published(*SALES) == before
    lines = [entry.user_message for entry in shop.instance.all_logs(result.run_id)]
    assert any(f"nothing in plan {plan_id} is different" in line for line in lines)


def test_what_is_missing_is_published_at_once_beside_what_waits(shop: Shop):
    assert shop.fill("toy.sales", cells=f"{DAYS[0]}...{DAYS[2]}").success
    shop.sell(DAYS[1], "west", 7)

    result = shop.fill("toy.sales", cells=ALL)

    assert result.success, failure(result)
    assert sorted(map(str, keys(result, "toy.sales"))) == list(DAYS)
    assert [*waiting(result, "toy.sales").values()] == [list(DAYS[:3])]


def test_a_second_launch_over_cells_that_wait_is_refused_and_names_the_plan(shop: Shop):
    assert shop.fill("toy.sales", cells=ALL).success
    shop.sell("2024-01-30", "west", 7)
    assert shop.fill("toy.sales", cells=ALL).success
    [(waiting, _)] = plans()

    result = shop.fill("toy.sales", cells=ALL)

    assert not result.success
    said = f"2024-01-28..2024-02-03 (7) by plan {waiting}. Apply and promote the other plan, or abandon it, then launch again"
    assert said in failure(result)
    [(given_up, status)] = [each for each in plans() if each[0] != waiting]
    assert status is PlanStatus.ABANDONED
    assert "abandoned" in events(given_up)


def test_published_cells_of_a_launch_that_was_refused_are_green_again_once_they_are_reported(
    shop: Shop,
):
    assert shop.fill("toy.sales", cells=ALL).success
    shop.sell("2024-01-30", "west", 7)
    assert shop.fill("toy.sales", cells=ALL).success
    [(plan_id, _)] = plans()
    assert not shop.fill("toy.sales", cells=ALL).success
    assert shop.red("toy.sales") == [*DAYS]
    promote(shop, plan_id)

    state = StateResource()
    loaded = Loaded.of(build_graph(MODELS, SOURCES))
    report_ready(shop.instance, open_run(state.project(loaded, "report"), PROD))
    state.store.close()

    assert shop.red("toy.sales") == []


@pytest.fixture
def cut(shop: Shop) -> Shop:
    """Sales from the fourth day on, of which those from the sixth on are published by another definition."""
    assert shop.fill("toy.sales", cells=f"{DAYS[3]}...{DAYS[6]}").success
    assert isinstance(sales.logic, SqlQuery)
    twice = SqlQuery(sales.logic.sql.replace("SUM(amount)", "SUM(amount * 2)"))
    models = [replace(sales, query=twice) if model is sales else model for model in MODELS]
    graph, state = build_graph(models, SOURCES), StateResource()
    project = state.project(Loaded.of(graph), "edit", lent(shop.spark), "ann")
    request = PlanRequest(
        environment=PROD, asked_by="ann", reason="twice", cutoff=DAYS[5], select=("toy.sales",)
    )
    plan = plan_made(state.store, graph, request, clock=now, data_root=state.data_root)
    apply_plan(project, plan)
    promote_plan(project, plan)
    state.store.close()
    return replace(shop, defs=build_definitions(models=models, sources=SOURCES))


def test_cells_before_a_cutoff_that_were_never_built_are_not_required_of_a_launch(cut: Shop):
    result = cut.fill("toy.sales", cells=f"{DAYS[1]}...{DAYS[2]}")

    assert result.success, failure(result)
    assert keys(result, "toy.sales") == []
    assert [key for key, _ in observed(result, "toy.sales")] == [*DAYS[1:3]]


def test_published_cells_that_a_cutoff_keeps_are_told_as_they_are_beside_those_that_are_built_again(
    cut: Shop,
):
    result = cut.fill("toy.sales", cells=f"{DAYS[2]}...{DAYS[6]}")

    assert result.success, failure(result)
    said = {key: "skipped" in metadata for key, metadata in told(result, "toy.sales")}
    assert said == {day: day in DAYS[:5] for day in DAYS[3:]}
    assert [key for key, _ in observed(result, "toy.sales")] == [DAYS[2]]
    found = checks(result, "toy.sales")["published_amount_not_negative"]
    assert found.passed, found.description


def test_checks_show_what_the_audits_of_the_plan_found_whichever_run_has_built_it(shop: Shop):
    launch = shop.backfill(*DAYS)
    assert shop.fill("toy.sales", cells=ALL).success
    shop.sell("2024-01-30", "west", 2000)

    built = shop.fill("toy.sales", cells=ALL, **launch)
    again = shop.fill("toy.sales", cells=ALL, **launch)

    for result in (built, again):
        assert result.success, failure(result)
        found = checks(result, "toy.sales")
        assert not found["amount_is_usual"].passed
        assert (
            found["amount_is_usual"].description
            == "found 1 of 7 rows fail amount <= 1000, allowed 0 rows"
        )
        assert found["amount_not_negative"].passed


def test_a_run_tells_of_the_cells_that_it_targets_where_its_plan_builds_late_ones_besides(
    shop: Shop,
):
    assert shop.fill("toy.sales", cells=ALL).success
    shop.sell(DAYS[1], "west", 7)
    shop.sell(DAYS[4], "west", 7)

    result = shop.fill("toy.sales", cells=DAYS[1])

    assert result.success, failure(result)
    assert keys(result, "toy.sales") == [DAYS[1]]


def test_the_runs_of_a_backfill_of_a_job_share_one_plan(shop: Shop):
    launch = shop.backfill(DAYS[0], DAYS[4])
    assert shop.fill("toy.sales", cells=ALL).success
    shop.sell(DAYS[0], "west", 7)

    results = [shop.fill("toy.sales", cells=day, **launch) for day in (DAYS[0], DAYS[4])]

    [(plan_id, _)] = plans()
    for day, result in zip((DAYS[0], DAYS[4]), results, strict=True):
        assert result.success, failure(result)
        assert waiting(result, "toy.sales") == {plan_id: [day]}


def test_runs_of_a_backfill_that_is_stored_after_them_each_build_their_own_cells(shop: Shop):
    launch: dict[str, Any] = {"dagster/backfill": "of the command `dagster job backfill`"}
    assert shop.fill("toy.sales", cells=ALL).success

    for day in (DAYS[0], DAYS[4]):
        result = shop.fill("toy.sales", cells=day, **launch)
        assert result.success, failure(result)
        assert [key for key, said in told(result, "toy.sales") if said.get("same_content")] == [day]


def test_cells_that_another_run_fills_after_the_launch_has_its_plan_are_told_as_they_are(
    shop: Shop,
):
    launch = shop.backfill(*DAYS)
    released: dict[str, Any] = {"backfill/reason": "backfill"}
    assert shop.fill("toy.sales", cells=ALL).success
    shop.sell("2024-01-30", "west", 7)
    assert shop.fill("toy.sales", cells=ALL, **launch).success
    assert shop.fill("toy.sales_of_three_days", cells=ALL, **released).success

    result = shop.fill("toy.sales_of_three_days", cells=ALL, **launch)

    assert result.success, failure(result)
    assert sorted(map(str, keys(result, "toy.sales_of_three_days"))) == list(DAYS)
    assert waiting(result, "toy.sales_of_three_days") == {}
    assert len(plans()) == 1


def test_a_launch_that_died_before_it_applied_its_plan_makes_another_when_it_is_re_executed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
):
    launch = shop.backfill(*DAYS)
    assert shop.fill("toy.sales", cells=ALL).success
    shop.sell("2024-01-30", "west", 7)
    with monkeypatch.context() as patched:
        patched.setattr(by_hand, "carried_out", None)  # its process dies here
        assert not shop.fill("toy.sales", cells=ALL, **launch).success
    [(died, _)] = plans()
    shop.refresh("toy.sales", "2024-01-30")  # what it rewrites has moved since
    shop.sell("2024-01-31", "west", 7)

    result = shop.fill("toy.sales", cells=ALL, **launch)

    assert result.success, failure(result)
    by_id = dict(plans())
    assert by_id.pop(died) is PlanStatus.ABANDONED
    assert by_id == dict.fromkeys(waiting(result, "toy.sales"), PlanStatus.BUILT)


def test_plans_that_a_launch_did_not_make_can_be_unreadable_and_are_not_parsed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
):
    assert shop.fill("toy.sales", cells=ALL).success
    assert shop.fill("toy.sales", cells=DAYS[0]).success
    [(before, status)] = plans()
    assert status is PlanStatus.PROMOTED
    latest = Plans.latest

    def of_another_release(*args: Any, **chosen: Any) -> list[StoredPlan]:  # noqa: ANN401
        content = f'{{"format": "{FORMAT}", "format_version": 99}}'
        found = latest(*args, **chosen)
        return [
            replace(plan, content=content) if plan.plan_id == before else plan for plan in found
        ]

    monkeypatch.setattr(Plans, "latest", of_another_release)
    result = shop.fill("toy.sales", cells=DAYS[1])

    assert result.success, failure(result)
    assert keys(result, "toy.sales") == [DAYS[1]]
