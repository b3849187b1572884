"""A history, step by step, and its end: everything is planned, built and published, and nothing is left."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.models.graph import UnknownModelError
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.histories import (
    adopting,
    backups,
    deaths,
    edits,
    launching,
    looking_back,
    lost_state,
    maintaining,
    meanwhile,
    promises,
    queueing,
    supplying,
    verbs,
)
from backfill_assets_tests.histories.checks import settled
from backfill_assets_tests.histories.history import MINUTE
from backfill_assets_tests.histories.hours import FIRST_HOUR_ON
from backfill_assets_tests.histories.published import WrongError

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets_tests.histories.history import History

Step: TypeAlias = "Callable[[History], None]"

NOW = datetime(2024, 4, 2, tzinfo=UTC)
"""When a history begins."""

STEPS: dict[Step, int] = {
    edits.late_sales: 4,
    supplying.late_deliveries: 6,
    edits.days_pass: 3,
    edits.edit: 4,
    edits.edit_all_back: 1,
    edits.rename_or_remove: 2,
    edits.bad_sale: 1,
    verbs.fill: 2,
    verbs.fill_in_dev: 1,
    verbs.refresh: 2,
    verbs.plan: 4,
    verbs.apply: 8,
    verbs.promote: 12,
    verbs.roll_back: 6,
    verbs.roll_back_in_dev: 3,
    verbs.roll_back_to: 2,
    verbs.undo: 6,
    verbs.undo_in_dev: 3,
    verbs.abandon: 2,
    promises.collect_rest: 2,
    promises.promise_otherwise: 1,
    verbs.whole_plan: 5,
    verbs.plan_for_dev: 2,
    verbs.drop_dev: 1,
    verbs.take_from_dev_to_prod: 2,
    verbs.hold_or_release: 2,
    queueing.queue: 4,
    queueing.serve_queue: 6,
    queueing.control: 1,
    launching.launch_by_hand: 4,
    meanwhile.publication_beside_a_batch: 5,
    meanwhile.run_beside_a_publication: 4,
    looking_back.explain_a_number: 4,
    looking_back.replay_some_cells: 3,
    looking_back.register_a_result: 3,
    looking_back.ask_of_results: 3,
    lost_state.rebuild_lost_state: 2,
    backups.back_up: 2,
    backups.restore: 3,
    adopting.adopt_a_table: 3,
    maintaining.maintain_a_source: 3,
    maintaining.declare_a_source_otherwise: 2,
}
"""What may happen next, and how often in comparison."""

_MOST_PLANS = 5
_DEATHS = 0.25
_FIRST_SALES = 2


def begin(history: History) -> None:
    """Land sales of every day, and fill every model."""
    for day in history.past_days:
        history.sales.sell_some(day, _FIRST_SALES, history.random)
    if history.has_hours:
        for day in history.past_days:
            if day >= FIRST_HOUR_ON:
                edits.visit(history, day)
    if history.has_deliveries:
        supplying.deliver_rest(history)
    promises.promise_otherwise(history)
    history.world.fill(history.graph)
    check(history)


def step(history: History) -> None:
    """Do something, and check all that is published. The product may refuse it, which changes nothing wrongly."""
    possible = {one: weight for one, weight in STEPS.items() if _is_possible(history, one)}
    chosen = history.random.choices(list(possible), list(possible.values()))[0]
    history.world.clock.now += MINUTE
    said = len(history.said)
    try:
        _taken(history, chosen)
        history.done[chosen.__name__] += len(history.said) > said
    except UnknownModelError:
        raise  # nothing was asked of a model that is not there
    except BackfillAssetsError as error:
        history.say(f"  {chosen.__name__} is refused, {type(error).__name__}: {error}")
        history.refused[f"{chosen.__name__}: {type(error).__name__}"] += 1
    check(history)


def _taken(history: History, chosen: Step) -> None:
    """Take a step; the process of a verb may die, and what a dead one has begun is finished by a later one."""
    with deaths.finishing(history):
        if chosen in deaths.MORTAL and history.random.random() < _DEATHS:
            moment = deaths.any_moment(history.random)
            history.done["deaths"] += deaths.dying(history, chosen, moment)
        else:
            chosen(history)


def _is_possible(history: History, chosen: Step) -> bool:
    if chosen in meanwhile.BESIDE_PUBLICATIONS:
        return bool(meanwhile.publications(history))
    if chosen is backups.restore:
        return history.backup is not None
    if chosen is lost_state.rebuild_lost_state:
        return lost_state.can_be_rebuilt(history)
    return verbs.is_possible(history, chosen)


def check(history: History) -> None:
    """Hold each environment against what follows from the sources."""
    for environment in history.environments:
        history.check(environment)


def settle(history: History) -> None:
    """Carry out plans until one is empty: nothing refuses, all ends, and nothing is left to do."""
    history.say("from here on everything is planned and published")
    edits.delete_bad_sales(history)
    maintaining.accept_cells_without_rows(history)
    _abandon_open_plans(history)
    _land_lost_rows(history)
    for number in range(_MOST_PLANS):
        history.world.clock.now += MINUTE
        history.world.fill(history.graph)
        plan = verbs.made(history, PROD, reason=f"what is left, {number}", **_lifting(history))
        with deaths.finishing(history):
            verbs.carry_out(history, plan)
        check(history)
        if plan.is_empty:
            settled(history.look(), "the plan is empty")
            return
    raise WrongError(f"after {_MOST_PLANS} plans there is always another one to make")


def _land_lost_rows(history: History) -> None:
    """Let no day be without sales, nor an hour that had some: a plan is refused that loses published rows."""
    for day in sorted(set(history.past_days) - set(history.sales.days)):
        history.sales.sell_some(day, 1, history.random)
    for hour in sorted(history.visits.had - set(history.visits.days)):
        history.visits.sell_some(hour, 1, history.random)
    if history.has_deliveries:
        supplying.deliver_rest(history)


def _lifting(history: History) -> dict[str, Any]:
    """Lift the cutoffs: with one a plan is refused that takes a column away."""
    cutoffs = history.look().run.view().cutoffs
    return {"lift_cutoffs": tuple(name for name in history.project if name in cutoffs)}


def _abandon_open_plans(history: History) -> None:
    for plan in history.kept_plans(*verbs.UNFINISHED):
        try:
            abandon_plan(history.plans.project(history.graph), plan)
        except RequestError:  # a dead process had decided to publish it
            if history.world.store.plans.get(plan.plan_id).status is not PlanStatus.PROMOTED:
                raise
    deaths.note_promoted(history)
