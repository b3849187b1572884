"""The stages of a plan: which, and in which order, each verb does."""

from __future__ import annotations

from typing import Any

import pytest

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.plan import Build, CellWork, Change, ModelPlan, Plan, Why
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.planning.plan.stages import (
    AuditKept,
    BuildCells,
    CarryOver,
    Check,
    Close,
    FillGaps,
    Logic,
    OpenWorkspace,
    Publish,
    Restore,
    abandon_stages,
    apply_stages,
    promote_stages,
    queue_stages,
    rollback_stages,
    served_stage,
    undo_stages,
)
from backfill_assets.snapshots.publication import PublicationKind
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import days
from backfill_assets_tests.render.plans import a_plan


def planned(name: str, build: Build, cells: IntervalSet) -> ModelPlan:
    return ModelPlan(
        model=name,
        change=Change.UNCHANGED,
        category=None,
        build=build,
        fingerprint="f",
        version="v",
        work=(CellWork(Why.RESTATED, cells),) if cells else (),
    )


GAPS = planned("web.gaps", Build.GAP_FILL, days(7))
NEW = planned("web.new", Build.NEW_VERSION, days(8, 9))
OVER = planned("web.over", Build.IN_PLACE, days(9))
POINTER = planned("web.pointer", Build.POINTER, IntervalSet.empty())
FILLED, BUILT = {"web.gaps": days(7)}, {"web.new": days(8, 9), "web.over": days(9)}


def plan_of(*models: ModelPlan, **given: Any) -> Plan:  # noqa: ANN401 - any field
    return a_plan(*models, **given)


def test_a_protected_environment_is_built_checked_and_left_to_a_person():
    assert apply_stages(plan_of(GAPS, NEW, OVER, POINTER, protected=True)) == (
        FillGaps(FILLED),
        OpenWorkspace(),
        BuildCells(BUILT),
        AuditKept(),
        Check(),
    )


def test_a_dual_run_carries_over_what_both_histories_get_before_it_is_checked():
    asked = PlanRequest(environment="prod", asked_by="ann", dual_run_days=2)

    assert apply_stages(plan_of(NEW, OVER, protected=True, request=asked)) == (
        OpenWorkspace(),
        BuildCells(BUILT),
        AuditKept(),
        CarryOver(),
        Check(),
    )


def test_an_unprotected_environment_is_checked_by_what_publishes_it():
    assert apply_stages(plan_of(GAPS, NEW, OVER, protected=False)) == (
        FillGaps(FILLED),
        OpenWorkspace(),
        BuildCells(BUILT),
        AuditKept(),
    )


@pytest.mark.parametrize("protected", [True, False])
def test_gaps_alone_need_no_workspace_and_no_promotion(*, protected: bool):
    plan = plan_of(GAPS, protected=protected)
    assert apply_stages(plan) == (FillGaps(FILLED), Close(PlanStatus.PROMOTED))
    assert queue_stages(plan) == ()


def test_a_plan_that_only_removes_models_has_a_workspace_all_the_same():
    assert apply_stages(plan_of(removed=("web.old",), protected=False)) == (
        OpenWorkspace(),
        BuildCells({}),
        AuditKept(),
    )


def test_a_promotion_checks_what_it_carries_over_and_publishes_last():
    assert promote_stages() == (CarryOver(), Check(), AuditKept(), Publish())


def test_a_rollback_computes_nothing_and_an_undo_computes_with_the_old_logic():
    assert rollback_stages() == (
        Restore(PublicationKind.ROLLBACK),
        Close(PlanStatus.ROLLED_BACK),
    )
    assert undo_stages() == (
        OpenWorkspace(Logic.OLD),
        CarryOver(Logic.OLD),
        Restore(PublicationKind.UNDO),
        Close(PlanStatus.UNDONE),
    )


def test_what_is_abandoned_is_only_closed():
    assert abandon_stages() == (Close(PlanStatus.ABANDONED),)


def test_the_queue_opens_the_workspace_and_its_runs_build_parts_of_the_same_stages():
    assert queue_stages(plan_of(GAPS, NEW, protected=True)) == (OpenWorkspace(),)
    assert served_stage(NEW, days(7, 8)) == BuildCells({"web.new": days(8)})
    assert served_stage(GAPS, days(7, 8)) == FillGaps({"web.gaps": days(7)})
