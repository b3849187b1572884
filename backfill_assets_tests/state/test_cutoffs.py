"""A cutoff is in force once its plan is promoted, until another plan lifts it or it is taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.cutoff import Cutoff
from backfill_assets.snapshots.environment import Environment
from backfill_assets.snapshots.stored_plan import OPEN, PlanStatus
from backfill_assets_tests.state.building import Asked, fill
from backfill_assets_tests.state.publishing import Trial

if TYPE_CHECKING:
    from backfill_assets.state.store import Store

SET = Cutoff("2024-01-06", "agreed")


def promoted(store: Store, plan_id: str, cutoff: Cutoff | None) -> None:
    """Promote a plan that sets, or lifts, the cutoff of orders."""
    trial = Trial(store, plan_id, cutoffs={"orders": cutoff})
    trial.open()
    trial.save()
    trial.publish()


def in_force(store: Store, environment: str = "prod") -> dict[str, Cutoff]:
    return dict(store.views.of(environment).cutoffs)


def test_a_cutoff_counts_in_its_plans_workspace_at_once_and_in_prod_once_it_is_promoted(
    store: Store,
):
    fill(store, Asked(start=0, end=10))
    trial = Trial(store, "p1", cutoffs={"orders": SET})
    trial.open()
    trial.save()
    told = {"orders": Cutoff("2024-01-06", "agreed", "p1")}

    assert in_force(store, "plan:p1") == told
    assert in_force(store) == {}
    trial.publish()
    assert in_force(store) == told


def test_whoever_follows_prod_obeys_its_cutoffs(store: Store):
    fill(store, Asked(start=0, end=10))
    promoted(store, "p1", SET)
    store.environments.save_environment(Environment("dev", protected=False, follows="prod"))

    assert in_force(store, "dev") == in_force(store) != {}


def test_a_cutoff_is_lifted_and_the_lifting_taken_back(store: Store):
    fill(store, Asked(start=0, end=10))
    promoted(store, "p1", SET)
    promoted(store, "p2", None)
    assert in_force(store) == {}

    store.plans.set_plan_status("p2", PlanStatus.PROMOTED, PlanStatus.ROLLED_BACK)
    assert in_force(store)["orders"].plan_id == "p1"
    store.plans.set_plan_status("p1", PlanStatus.PROMOTED, PlanStatus.UNDONE)
    assert in_force(store) == {}


def test_of_two_plans_the_one_that_is_promoted_last_says_the_cutoff(store: Store):
    fill(store, Asked(start=0, end=10))
    trials = [
        Trial(store, "p1", cutoffs={"orders": SET}),
        Trial(store, "p2", cutoffs={"orders": None}),
    ]
    for trial in trials:
        trial.open()
        trial.save()
    for trial in reversed(trials):
        trial.publish()

    assert in_force(store)["orders"].plan_id == "p1"


def test_a_plan_that_is_given_up_leaves_no_cutoff(store: Store):
    trial = Trial(store, "p1", cutoffs={"orders": SET})
    trial.open()
    trial.save()

    store.environments.drop_workspace("p1")
    store.plans.set_plan_status("p1", OPEN, PlanStatus.ABANDONED)

    assert in_force(store) == {}
