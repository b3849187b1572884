"""Runs that serve a plan, in this process: what they build, and what Dagster is told of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from backfill_assets import build_definitions
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import apply_plan, queue_plan
from backfill_assets.models.graph import build_graph
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.orchestration.released_runs import op_name
from backfill_assets.orchestration.resources import StateResource, now
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.making import plan_made
from backfill_assets_tests.orchestration.shop import (
    Shop,
    checks,
    failure,
    keys,
    lent,
    observed,
    shown,
    told,
)
from backfill_assets_tests.toy import DAYS, MODELS, SOURCES, returns

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan

ALL = f"{DAYS[0]}...{DAYS[-1]}"


def queued(shop: Shop, model: str, *days: str) -> Plan:
    """Plan to build consecutive days again, and queue it."""
    state = StateResource()
    graph = build_graph(MODELS, SOURCES)
    request = PlanRequest(
        environment=PROD,
        asked_by="ann",
        reason="late",
        restate=(Restatement(model, days[0], days[-1]),),
    )
    plan = plan_made(state.store, graph, request, clock=now, data_root=state.data_root)
    project = state.project(Loaded.of(graph), "operator", lent(shop.spark), "ann")
    queue_plan(Operation(project=project, plan=plan))
    state.store.close()
    return plan


def status(plan: Plan) -> PlanStatus:
    state = StateResource()
    found = state.store.plans.get(plan.plan_id).status
    state.store.close()
    return found


def serve(shop: Shop, plan: Plan, model: str, *days: str) -> dg.ExecuteInProcessResult:
    """The run that the sensor asks for."""
    tags: dict[str, Any] = {
        "backfill/plan": plan.plan_id,
        "backfill/model": model,
        "backfill/reason": "plan",
        "backfill/cells": ",".join(days),
    }
    return shop.fill(model, cells=f"{days[0]}...{days[-1]}", **tags)


def finish(
    shop: Shop, plan: Plan, job: str = "finish", named: str = "plan"
) -> dg.ExecuteInProcessResult:
    defs = build_definitions(models=MODELS, sources=SOURCES)
    return defs.resolve_job_def(job).execute_in_process(
        run_config={"ops": {op_name(job): {"config": {named: plan.plan_id}}}},
        resources=shop.resources(),
        instance=shop.instance,
        raise_on_error=False,
    )


def test_a_plan_is_built_by_runs_told_as_observations_and_materialized_when_it_is_promoted(
    shop: Shop,
):
    shop.fill("toy.returns", "toy.returns_daily", cells=ALL)
    plan = queued(shop, "toy.returns", DAYS[1])
    shop.bring_back(DAYS[1], 500)

    first = serve(shop, plan, "toy.returns", DAYS[1])

    assert first.success, failure(first)
    assert keys(first, "toy.returns") == []
    [(cell, said)] = observed(first, "toy.returns")
    assert (cell, said["plan"]) == (DAYS[1], plan.plan_id)
    assert all(evaluation.passed for evaluation in checks(first, "toy.returns").values())
    assert figures(first)["cells_same_content"] == 0
    second = serve(shop, plan, "toy.returns_daily", DAYS[1])
    assert second.success, failure(second)
    assert keys(second, "toy.returns_daily") == []

    done = finish(shop, plan)

    assert done.success, failure(done)
    assert status(plan) is PlanStatus.BUILT
    assert not told(done, "toy.returns")
    promoted = finish(shop, plan, "promote")
    assert promoted.success, failure(promoted)
    assert status(plan) is PlanStatus.PROMOTED
    newest = shop.instance.get_latest_materialization_event(dg.AssetKey(["toy", "returns_daily"]))
    assert newest is not None
    assert newest.asset_materialization is not None
    assert newest.asset_materialization.partition == DAYS[1]
    report = Path(str(newest.asset_materialization.metadata["report"].value))
    assert report.is_file()
    assert f"Plan {plan.plan_id} for prod" in report.read_text(encoding="utf-8")
    assert figures(promoted)["report"] == str(report)


def promoted(shop: Shop, amount: int) -> Plan:
    """A day of the source is corrected, and a plan that builds it again is promoted."""
    plan = queued(shop, "toy.returns", DAYS[1])
    shop.bring_back(DAYS[1], amount)
    for model in ("toy.returns", "toy.returns_daily"):
        served = serve(shop, plan, model, DAYS[1])
        assert served.success, failure(served)
    for job in ("finish", "promote"):
        done = finish(shop, plan, job)
        assert done.success, failure(done)
    return plan


def test_a_run_whose_cells_are_built_already_shows_what_their_audits_have_found(shop: Shop):
    shop.fill("toy.returns", cells=ALL)
    plan = queued(shop, "toy.returns", DAYS[1])
    shop.bring_back(DAYS[1], 5000)

    for result in (serve(shop, plan, "toy.returns", DAYS[1]) for _ in range(2)):
        assert result.success, failure(result)
        assert not checks(result, "toy.returns")["amount_is_usual"].passed


def test_plans_are_taken_back_one_by_one_and_back_to_an_earlier_one(shop: Shop):
    shop.fill("toy.returns", "toy.returns_daily", cells=ALL)
    first, second, third = (promoted(shop, amount) for amount in (500, 600, 700))

    undone = finish(shop, third, "undo")

    assert undone.success, failure(undone)
    assert shown(undone)["changed_cells"] == 2
    assert status(third) is PlanStatus.UNDONE
    back = finish(shop, first, "rollback", named="to")
    assert back.success, failure(back)
    assert shown(back)["rolled_back"] == second.plan_id
    assert [status(first), status(second)] == [PlanStatus.PROMOTED, PlanStatus.ROLLED_BACK]
    alone = finish(shop, first, "rollback")
    assert alone.success, failure(alone)
    assert status(first) is PlanStatus.ROLLED_BACK


def test_what_comes_out_the_same_is_counted_on_the_page_of_the_run(shop: Shop):
    shop.fill("toy.returns", cells=ALL)
    plan = queued(shop, "toy.returns", DAYS[1])

    result = serve(shop, plan, "toy.returns", DAYS[1])

    assert figures(result) == {"plan": plan.plan_id, "cells_built": 1, "cells_same_content": 1}


def test_a_run_whose_models_were_edited_fails_with_the_difference(shop: Shop):
    shop.fill("toy.returns", cells=ALL)
    plan = queued(shop, "toy.returns", DAYS[1])
    edited = replace(returns, description="in other words")
    models = [edited if model is returns else model for model in MODELS]
    changed = build_definitions(models=models, sources=SOURCES)

    result = serve(replace(shop, defs=changed), plan, "toy.returns", DAYS[1])

    assert not result.success
    assert "the code has changed" in failure(result)
    assert "'toy.returns' was" in failure(result)


def test_a_run_of_a_plan_that_is_over_does_nothing_and_says_so(shop: Shop):
    shop.fill("toy.returns", cells=ALL)
    plan = queued(shop, "toy.returns", DAYS[1])
    assert finish(shop, plan, "abandon").success

    result = serve(shop, plan, "toy.returns", DAYS[1])

    assert not result.success
    assert "is abandoned already" in failure(result)
    assert shop.red("toy.returns") == []


def test_of_a_run_of_a_plan_only_cells_that_have_failed_are_shown_as_failed(shop: Shop):
    shop.fill("toy.returns", cells=ALL)
    plan = queued(shop, "toy.returns", *DAYS[1:5])
    shop.bring_back(DAYS[4], -500)  # in a batch of its own with the day before

    result = serve(shop, plan, "toy.returns", *DAYS[1:5])

    assert not result.success
    assert [day for day, _ in observed(result, "toy.returns")] == [*DAYS[1:3]]
    assert shop.red("toy.returns") == [*DAYS[3:5]]


def test_gaps_that_a_queued_plan_fills_in_another_environment_tell_nothing_of_prods_assets(
    shop: Shop,
):
    assert shop.fill("toy.returns", cells=f"{DAYS[0]}...{DAYS[1]}").success
    assert isinstance(returns.logic, SqlQuery)
    twice = SqlQuery(returns.logic.sql.replace("SUM(amount)", "SUM(amount * 2)"))
    models = [replace(returns, query=twice) if model is returns else model for model in MODELS]
    graph, state = build_graph(models, SOURCES), StateResource()
    project = state.project(Loaded.of(graph), "operator", lent(shop.spark), "ann")
    state.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))

    def planned(end: str) -> Plan:
        request = PlanRequest(
            environment="dev", asked_by="ann", reason="twice", select=("toy.returns",), end=end
        )
        return plan_made(state.store, graph, request, clock=now, data_root=state.data_root)

    apply_plan(project, planned(DAYS[1]))
    plan = planned(DAYS[2])
    assert [model.build for model in plan.models] == [Build.GAP_FILL]
    queue_plan(Operation(project=project, plan=plan))
    edited = replace(shop, defs=build_definitions(models=models, sources=SOURCES))

    result = serve(edited, plan, "toy.returns", DAYS[2])

    assert result.success, failure(result)
    assert state.store.views.of("dev").ready("toy.returns") - state.store.views.of(PROD).ready(
        "toy.returns"
    )
    state.store.close()
    assert keys(result, "toy.returns") == []
    assert [key for key, _ in observed(result, "toy.returns")] == [DAYS[2]]
    for name, evaluation in checks(result, "toy.returns").items():
        assert not evaluation.passed, name
        assert evaluation.severity is dg.AssetCheckSeverity.WARN


def figures(result: dg.ExecuteInProcessResult) -> dict[str, Any]:
    """What the step's output says, but for Dagster's own mark."""
    for event in result.all_events:
        if (
            event.event_type_value == "STEP_OUTPUT"
            and event.step_output_data.output_name == "result"
        ):
            found = event.step_output_data.metadata.items()
            return {key: entry.value for key, entry in found if not key.startswith("__")}
    return {}
