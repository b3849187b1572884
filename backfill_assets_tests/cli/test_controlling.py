"""`pause`, `resume`, `stop` and `limit`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.cli.prepared import opened_run
from backfill_assets_tests.state.queueing import keep_plan

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

PLAN = "p1a2b3c4d5"


@pytest.fixture
def plan(shop: Prepared) -> str:
    """A plan that is being applied."""
    del shop
    _keep(PLAN)
    return PLAN


def _keep(plan_id: str, status: PlanStatus = PlanStatus.APPLYING) -> None:
    with opened_run("prod") as run:
        keep_plan(run.store, plan_id, status)


def _control(plan_id: str) -> Control:
    with opened_run("prod") as run:
        return run.store.queue.control_of(plan_id)


def _limits() -> dict[str, int]:
    with opened_run("prod") as run:
        return run.store.limits.by_scope()


def test_a_plan_is_paused_and_resumed_and_its_history_tells(backfill: Backfill, plan: str):
    paused = backfill("pause", "p1a", "--reason", "month's close")
    assert paused.lines == [
        f"Next: backfill resume {plan}", f"{plan}: paused, 0 batches at work.",
    ]  # fmt: skip
    assert _control(plan) is Control.PAUSED

    resumed = backfill("resume", plan)
    assert resumed.lines == [f"Next: backfill apply {plan}", f"{plan}: goes on."]
    assert _control(plan) is Control.RUNNING
    with opened_run("prod") as run:
        told = [(event.event, event.who, event.why) for event in run.store.plans.events(plan)]
    assert told == [("paused", "ada", "month's close"), ("resumed", "ada", "")]


def test_a_plan_in_the_queue_keeps_its_place_over_a_pause(backfill: Backfill, plan: str):
    with opened_run("prod") as run:
        run.store.queue.queue_plan(plan, "ada", "22:00-06:00 UTC")
    paused = backfill("pause", plan, "--json").json

    assert paused["control"] == "paused"
    assert paused["queued_at"] is not None
    assert paused["off_peak"] == "22:00-06:00 UTC"
    assert backfill("resume", plan).lines[0] == f"Next: backfill show {plan}"


def test_a_stopped_plan_leaves_the_queue_and_may_be_stopped_harder(backfill: Backfill, plan: str):
    with opened_run("prod") as run:
        run.store.queue.queue_plan(plan, "ada")

    assert backfill("stop", plan, "--json").json["queued_at"] is None
    assert _control(plan) is Control.STOPPED
    assert "cells already built are kept" in backfill("stop", plan, "--now").lines[-1]
    assert _control(plan) is Control.CANCELLED


@pytest.mark.parametrize("verb", ["stop", "pause"])
def test_a_plan_that_is_held_already_is_refused(backfill: Backfill, plan: str, verb: str):
    assert backfill("stop", plan).code == 0
    ended = backfill(verb, plan)

    assert ended.code == 1
    assert ended.err.startswith(f"error: plan {plan} is stopped already")
    assert _control(plan) is Control.STOPPED


def test_a_plan_that_is_not_paused_is_not_resumed(backfill: Backfill, plan: str):
    ended = backfill("resume", plan)

    assert ended.code == 1
    assert "neither paused nor stopped" in ended.err


@pytest.mark.parametrize("verb", ["pause", "stop", "resume"])
@pytest.mark.parametrize("status", [PlanStatus.PROMOTED, PlanStatus.ABANDONED])
def test_a_plan_whose_life_is_over_is_refused(backfill: Backfill, verb: str, status: PlanStatus):
    _keep("p9", status)
    ended = backfill(verb, "p9")

    assert ended.code == 1
    assert f"plan p9 is {status.value}" in ended.err


@pytest.mark.parametrize("verb", ["pause", "stop", "resume"])
def test_a_plan_that_is_not_there_is_refused(backfill: Backfill, verb: str):
    ended = backfill(verb, "p9")
    assert (ended.code, "plan 'p9' is not in the state" in ended.err) == (1, True)


def test_without_anything_said_the_defaults_are_shown(backfill: Backfill):
    ended = backfill("limit")

    assert ended.code == 0
    assert ended.lines[-1] == "0 batches at work; at most 2 altogether."
    assert backfill("limit", "--json").json == [
        {"scope": "all", "limit": 2, "set": False, "default": 2, "at_work": []}
    ]


def test_limits_of_all_a_model_and_a_plan_are_set_and_taken_away(backfill: Backfill, plan: str):
    for of in ("all", "toy.sales", "p1a"):
        assert backfill("limit", of, "3").code == 0
    assert _limits() == {"all": 3, "model:toy.sales": 3, f"plan:{plan}": 3}

    assert "by hand" in backfill("limit").out
    assert backfill("limit", plan, "--default").code == 0
    assert _limits() == {"all": 3, "model:toy.sales": 3}


def test_what_is_at_work_is_shown_under_each_of_its_limits(backfill: Backfill, shop: Prepared):
    batch = shop.claim("toy.sales", "2024-02-01", "2024-02-02")

    rows = {row["scope"]: row for row in backfill("limit", "--json").json}
    assert rows["all"]["at_work"] == rows["model:toy.sales"]["at_work"] == [batch]
    assert rows["model:toy.sales"]["set"] is False


@pytest.mark.parametrize("number", ["0", "-1"])
def test_a_limit_below_one_is_refused(backfill: Backfill, number: str):
    assert backfill("limit", "all", "3").code == 0
    ended = backfill("limit", "all", number)

    assert ended.code == 1
    assert f"can't be {number}; expected 1 or more" in ended.err
    assert _limits() == {"all": 3}


@pytest.mark.parametrize(
    ("of", "why"),
    [
        ("toy.nothing", "toy.nothing"),
        ("p9", "plan 'p9' is not in the state"),
        ("toy.raw_sales", "is a source"),
    ],
)
def test_a_limit_of_something_unknown_is_refused(backfill: Backfill, of: str, why: str):
    ended = backfill("limit", of, "3")

    assert (ended.code, why in ended.err) == (1, True)
    assert _limits() == {}


@pytest.mark.parametrize("asked", [("all",), ("all", "3", "--default"), ("--default",)])
def test_a_limit_that_can_not_be_told_is_refused(backfill: Backfill, asked: tuple[str, ...]):
    ended = backfill("limit", *asked)

    assert ended.code == 1
    assert "expected a plan, a model or `all`" in ended.err
    assert _limits() == {}
