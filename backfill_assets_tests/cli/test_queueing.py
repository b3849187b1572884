"""`apply --queue` and `show --watch`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest

from backfill_assets.cli import watching
from backfill_assets.cli.operating import looking
from backfill_assets.cli.stored_plans import plan_named
from backfill_assets.engine.batch.requests import batch_request
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.environment import workspace_name
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.cli.prepared import opened_run

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


@pytest.fixture
def plan(shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch) -> str:
    """A plan that fills an empty lake."""
    del shop
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    return backfill("plan", "--json").json["plan_id"]


def test_a_plan_is_left_to_the_queue_without_spark(backfill: Backfill, plan: str):
    done = backfill("apply", plan, "--queue", "--off-peak", "22:00-06:00 Europe/Berlin")

    assert done.code == 0, done.err
    assert done.lines == [
        f"Next: backfill show {plan} --watch, or backfill pause {plan}",
        (
            f"{plan}: in the queue; the gap_fill_sensor releases it, in its hours, "
            "22:00-06:00 Europe/Berlin."
        ),
    ]
    assert "DAGSTER_HOME is not set" in done.err
    with opened_run("prod") as run:
        assert run.store.plans.get(plan).status is PlanStatus.APPLYING
        [queued] = run.store.queue.queued_plans()
        assert queued.plan_id == plan


def test_a_plan_is_not_applied_where_another_environment_is_named(backfill: Backfill, plan: str):
    done = backfill("apply", plan, "--queue", "--env", "dev_refunds")

    assert done.code == 1
    assert (
        f"plan {plan} is for prod, and --env dev_refunds was given; nothing was applied" in done.err
    )
    assert "backfill plan dev_refunds" in done.err
    assert backfill("apply", plan, "--queue", "--env", "prod").code == 0


def test_a_program_reads_what_the_queue_lacks(backfill: Backfill, plan: str):
    told = backfill("apply", plan, "--queue", "--json").json

    assert (told["plan_id"], told["control"]) == (plan, "running")
    assert len(told["lacking"]) == 1


def test_hours_without_the_queue_are_refused_before_anything_is_written(
    backfill: Backfill, plan: str
):
    done = backfill("apply", plan, "--off-peak", "22:00-06:00 UTC")

    assert done.code == 1
    assert "--queue" in done.err
    with opened_run("prod") as run:
        assert run.store.plans.get(plan).status is PlanStatus.PROPOSED


def test_hours_that_cannot_be_read_queue_nothing(backfill: Backfill, plan: str):
    done = backfill("apply", plan, "--queue", "--off-peak", "at night")

    assert done.code == 1
    assert "at night" in done.err
    with opened_run("prod") as run:
        assert run.store.queue.queued_plans() == ()


def test_watching_ends_when_the_plan_is_stopped_and_tells_each_change_once(
    backfill: Backfill, plan: str, capsys: pytest.CaptureFixture[str]
):
    backfill("apply", plan, "--queue")
    steps = [Control.PAUSED, None, Control.STOPPED]

    with opened_run("prod") as run:

        def meanwhile(seconds: float) -> None:
            assert seconds > 0
            control = steps.pop(0)
            if control is not None:
                run.store.queue.control_plan(plan, control, "ada")

        found = plan_named(run.store, plan)
        end = watching.watch(run.project, found, sleep=meanwhile)

    assert end.queued is not None
    assert end.queued.control is Control.STOPPED
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith(plan)]
    assert lines == [
        f"{plan}: applying, in the queue",
        f"{plan}: applying, paused, in the queue",
        f"{plan}: applying, stopped",
    ]


def _fail_what_can_begin(plan: str, kind: FailureKind) -> None:
    with looking() as at:
        run = at.run(workspace_name(plan))
        for planned in plan_named(run.store, plan).models:
            model = run.graph.model(planned.model)
            if any(upstream.name in run.graph.models for upstream in model.reads):
                continue
            for cells in planned.cells:
                asked = batch_request(
                    replace(run, plan_id=plan), model, IntervalSet.of([cells]), reason="gap"
                )
                run.store.batches.open_batch(asked)
                run.store.batches.fail_batch(
                    asked.batch_id, error="no", audits=(), failure=kind, finished_at=run.clock()
                )


@pytest.mark.parametrize(
    ("kind", "ends"), [(FailureKind.AUDIT, True), (FailureKind.TRANSIENT, False)]
)
def test_watching_ends_with_1_when_all_that_is_left_has_failed_and_nothing_comes_by_itself(
    backfill: Backfill, plan: str, monkeypatch: pytest.MonkeyPatch, kind: FailureKind, *, ends: bool
):
    backfill("apply", plan, "--queue")
    _fail_what_can_begin(plan, kind)

    def stop(_: float) -> None:
        with opened_run("prod") as run:
            run.store.queue.control_plan(plan, Control.STOPPED, "ada")

    monkeypatch.setattr("backfill_assets.cli.verbs.show.watch", partial(watching.watch, sleep=stop))
    done = backfill("show", plan, "--watch")

    assert done.code == (1 if ends else 0), done.err
    if ends:
        assert done.lines[-2].startswith("Next: backfill batches --failed")
        assert "all remaining cells have failed" in done.lines[-1]
    else:
        assert f"{plan}: applying, stopped" in done.lines
        assert done.lines[-2:] == [
            f"Next: backfill resume {plan}, or backfill abandon {plan}", f"{plan}: applying, stopped.",
        ]  # fmt: skip


def test_a_plan_that_is_over_is_watched_for_no_time(backfill: Backfill, plan: str):
    backfill("abandon", plan)

    done = backfill("show", plan, "--watch")

    assert done.code == 0
    assert done.lines[0] == f"{plan}: abandoned"
    assert done.lines[-1] == f"{plan}: abandoned."


def test_gc_forgets_the_limits_of_plans_that_have_ended_with_nothing_to_delete(backfill: Backfill):
    plan_id = backfill("plan", "--select", "toy.sales", "--json").json["plan_id"]
    backfill("limit", plan_id, "1")
    backfill("abandon", plan_id)

    assert backfill("gc").code == 0

    assert [row["scope"] for row in backfill("limit", "--json").json] == ["all"]
