"""The verbs of the product as people use them, each with what it may change."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from backfill_assets.engine.automatic.late_plan import refresh_late
from backfill_assets.engine.plans.plan_verbs import abandon_plan, rollback_plan, undo_plan
from backfill_assets.engine.plans.rollback_checks import promoted_after
from backfill_assets.engine.project.events import Failed, Waiting
from backfill_assets.engine.project.holds import hold_consumer, release_consumer
from backfill_assets.engine.review.known_differences import accept_difference
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.request import Category, KeptRows
from backfill_assets.snapshots.environment import PROD, Environment, workspace_name
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.histories.checks import (
    EVERYTHING,
    Allowed,
    differ_only,
    differing,
    holds_what_follows,
    keeps,
    unchanged,
)
from backfill_assets_tests.histories.history import DEVS, Promoted
from backfill_assets_tests.histories.looking_back import Publishing, tells_what_changed
from backfill_assets_tests.histories.models import READER
from backfill_assets_tests.histories.promises import open_while_promised
from backfill_assets_tests.histories.published import Contents, WrongError, starts
from backfill_assets_tests.histories.receipts import RECEIPTS, cells_left_by
from backfill_assets_tests.histories.requests import Asked, any_request
from backfill_assets_tests.histories.slices import leaking_if_said, leaves_the_rest
from backfill_assets_tests.histories.supplying import late_deliveries
from backfill_assets_tests.histories.weights import SMOOTHED

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping
    from datetime import datetime

    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import ModelPlan, Plan
    from backfill_assets_tests.histories.history import History
    from backfill_assets_tests.histories.oracle import Cells

Verb: TypeAlias = "Callable[[History], None]"

UNBUILT = (PlanStatus.PROPOSED, PlanStatus.APPLYING)
UNFINISHED = (*UNBUILT, PlanStatus.BUILT)


def fill(history: History) -> None:
    """Run every model; published history stays, but for what is refreshed in place."""
    history.say("a run fills gaps")
    looked, before = history.look(), history.contents()
    history.world.fill(history.graph)
    after = history.contents()
    allowed: Allowed = {
        name: looked.refreshed(name) | (after.of(name).keys() - before.of(name).keys())
        for name in looked.works
    }
    differ_only(before.cells, after.cells, allowed, "a run")
    keeps(before, after, "a run")
    _written_as_declared(history, before, after)


def _written_as_declared(history: History, before: Contents, after: Contents) -> None:
    """What a run has written follows from the present definitions, also where older cells keep another."""
    looked, landed = history.look(), history.landed
    holds_what_follows(after, looked, landed, {}, {}, written=differing(before, after))


def refresh(history: History) -> None:
    """Let late data be brought in as a schedule does, then run every model."""
    history.say("late data is refreshed, and a run fills gaps")
    before = history.contents()
    refresh_late(history.world.open(history.graph))
    history.world.fill(history.graph)
    keeps(before, history.contents(), "a refresh")
    _written_as_declared(history, before, history.contents())


def fill_in_dev(history: History) -> None:
    """Run every model in an environment that follows prod: nothing that prod publishes changes."""
    dev = history.random.choice(history.devs)
    history.say(f"a run fills gaps in {dev}")
    with _others_stay(history, dev, "a run"):
        replace(history.world, environment=dev, runs=history.world.runs + 500).fill(history.graph)


def plan(history: History) -> None:
    """Make a plan, and leave it."""
    made(history, PROD, **any_request(history))


def made(history: History, environment: str, **asked: Any) -> Plan:  # noqa: ANN401
    """Make a plan."""
    asked.setdefault("reason", f"line {len(history.said)}")
    if history.has_receipts:
        asked.setdefault("kept_rows", history.random.choice(list(KeptRows)))
    history.look(environment)
    new = history.plans.make(history.graph, environment, **asked)
    work = [
        f"{one.model}: {one.build}, {one.change}, {one.category}, {history.text(one.model, one.cells)}"
        for one in new.models
    ]
    history.say(
        f"plan {new.plan_id} for {environment}, asked {asked}: {'; '.join(work) or 'empty'}"
    )
    return new


def apply(history: History) -> None:
    """Apply one of the plans that wait for it."""
    found = history.recent_plan(*UNBUILT)
    if found:
        applied(history, found)


def applied(history: History, plan: Plan) -> Outcome:
    """Build a plan for prod. Nothing that is published changes, but for gaps that it fills.

    What a dead process has committed, and not recorded, is recorded by whichever batch next has the table's lock.
    """
    before = history.contents()
    committed = {one.model: history.in_flight(one.model) for one in plan.models}
    history.say(f"apply {plan.plan_id}")
    note_kept(history, PROD, plan)
    done = history.plans.apply(history.graph, plan)
    history.say(
        f"  it is {done.status}, left {dict(done.left)}, refused: {done.refused or 'nothing'}"
    )
    if done.left and not done.canaries:
        _says_what_stops_it(history, plan, done)
    allowed: Allowed = dict(committed)
    for one in plan.models:
        if not one.moves:
            gaps = history.starts(one.model, one.cells) - before.of(one.model).keys()
            allowed[one.model] = committed[one.model] | gaps
    differ_only(before.cells, history.contents().cells, allowed, f"apply of {plan.plan_id}")
    return done


def _says_what_stops_it(history: History, plan: Plan, done: Outcome) -> None:
    """What one apply leaves another one leaves too, and a failed or waiting batch is the reason."""
    again = history.plans.apply(history.graph, plan)
    reasons = [
        one for told in done.events.values() for one in told if isinstance(one, (Failed, Waiting))
    ]
    if again.left != done.left:
        raise WrongError(f"apply of {plan.plan_id} left {done.left}, the next one {again.left}")
    if not reasons:
        raise WrongError(f"apply of {plan.plan_id} leaves {done.left} and says nothing of it")


def promote(history: History) -> None:
    """Promote one of the plans that are built."""
    found = history.recent_plan(PlanStatus.BUILT)
    if found:
        promoted(history, found)


def promoted(history: History, plan: Plan) -> None:
    """Promote a plan for prod. Only its cells change, and to what its workspace has shown."""
    before, shown = history.contents(), _shown(history, plan)
    publishing = Publishing.of(history, plan, before)
    history.say(f"promote {plan.plan_id}")
    with leaking_if_said(history, plan):
        done = history.plans.promote(history.graph, plan)
    carried = {name: history.starts(name, cells) for name, cells in done.carried.items()}
    history.say(f"  carried over: {carried or 'nothing'}")
    after = history.contents()
    note_kept(history, PROD, plan)
    differ_only(
        before.cells,
        after.cells,
        _promised(plan, history.graph, (before, after), carried),
        f"promotion of {plan.plan_id}",
    )
    if shown.models:
        # Of a model that is declared no more, a publication also records what a dead process has committed.
        moved = [
            one.model for one in plan.models if one.moves and one.model in history.graph.models
        ]
        _publishes_what_was_shown(shown, after, moved, carried, plan.plan_id)
    leaves_the_rest(history, plan, before, after, carried)
    if plan.request.kept_rows is not KeptRows.DROP:
        keeps(before, after, f"promotion of {plan.plan_id}")
    history.note_promoted(plan.plan_id, before, after)
    tells_what_changed(history, publishing, done.number, after)


def _shown(history: History, plan: Plan) -> Contents:
    """What `read(plan=)` gives before the promotion."""
    workspace = workspace_name(plan.plan_id)
    there = history.world.store.environments.exists(workspace)
    return history.contents(workspace) if there else Contents(workspace)


def _promised(
    plan: Plan,
    graph: Graph,
    contents: tuple[Contents, Contents],
    carried: Mapping[str, set[datetime]],
) -> Allowed:
    """The cells that a promotion may change; those of a model that is declared otherwise by now are as it runs."""
    allowed: Allowed = dict.fromkeys(plan.removed, EVERYTHING)
    for one in plan.models:
        if one.build is Build.NEW_VERSION or one.model not in graph.models:
            allowed[one.model] = EVERYTHING
        else:
            known = {at for each in contents for at in each.cells.get(one.model, {})}
            cells = {at for at in known if one.cells.covers(epoch_of(at), epoch_of(at) + 1)}
            if one.model == RECEIPTS:
                before, after = (each.of(RECEIPTS) for each in contents)
                cells |= cells_left_by(before, after, cells)
            allowed[one.model] = cells | carried.get(one.model, set())
    return allowed


def _publishes_what_was_shown(
    shown: Contents,
    after: Contents,
    moved: Collection[str],
    carried: Mapping[str, set[datetime]],
    plan_id: str,
) -> None:
    differ_only(
        {name: shown.of(name) for name in moved},
        {name: after.of(name) for name in moved},
        dict(carried),
        f"reading plan {plan_id} before its promotion",
    )


def note_kept(history: History, environment: str, plan: Plan) -> None:
    """Note which models keep older cells as they were, or get empty ones, since a person has said so."""
    history.mixed[environment] |= {one.model for one in plan.models if _keeps(one)}
    for one in plan.models if plan.request.empty else ():
        history.blank[environment, one.model] |= history.starts(one.model, one.cells)


def _keeps(planned: ModelPlan) -> bool:
    by_decision = planned.decided_by not in ("", "planner")
    without_history = planned.category in (Category.FORWARD_ONLY, Category.METADATA)
    return by_decision or without_history or planned.kept_before is not None


def roll_back(history: History) -> None:
    """Roll one of prod's promoted plans back: what it has moved is as before it, no other changes."""
    _roll_back_one(history, PROD)


def roll_back_in_dev(history: History) -> None:
    """The same in an environment that follows prod."""
    dev = history.random.choice(history.devs)
    with _others_stay(history, dev, "a rollback"):
        _roll_back_one(history, dev)


def roll_back_to(history: History) -> None:
    """Roll back all that was promoted in an environment after a plan, the latest first."""
    environment = history.random.choice(history.environments)
    if found := history.recent(history.ways_back(environment)[1:]):
        history.say(f"rollback to {found.plan_id}")
        for each in promoted_after(history.world.store, found):
            _rolled_back(history, each)


def _roll_back_one(history: History, environment: str) -> None:
    if found := history.recent(history.ways_back(environment)):
        _rolled_back(history, found)


def _rolled_back(history: History, found: Plan) -> None:
    environment = found.environment
    if found.plan_id not in history.promoted:
        return
    then, before = history.promoted[found.plan_id], history.contents(environment)
    history.say(f"rollback of {found.plan_id} in {environment}")
    publishing = Publishing.of(history, found, before)
    with open_while_promised(history, found):
        done = rollback_plan(history.plans.project(history.graph), found)
    _is_refused_once_dropped(history, found)
    wanted, after = dict(before.cells), history.contents(environment)
    for name in {move.model for move in history.world.store.history.moves_of(found.plan_id)}:
        wanted[name] = _or_as_followed(history, environment, name, then.before.of(name), after)
    differ_only(wanted, after.cells, {}, f"rollback of {found.plan_id}")
    tells_what_changed(history, publishing, done.number, after)


def _moved(plan: Plan) -> set[str]:
    return {one.model for one in plan.models if one.moves} | set(plan.removed)


def _or_as_followed(
    history: History, environment: str, name: str, wanted: Cells, after: Contents
) -> Cells:
    """Let cells that an environment reads in prod be as prod publishes them now."""
    if environment == PROD:
        return wanted
    now, there = history.contents().of(name), after.of(name)
    followed = {at for at in wanted.keys() | there.keys() if now.get(at) == there.get(at)}
    mine = {at: rows for at, rows in wanted.items() if at not in followed}
    return mine | {at: rows for at, rows in there.items() if at in followed}


def undo(history: History) -> None:
    """Undo one of prod's promoted plans: its cells are as before it, those written since stay."""
    _undone(history, PROD)


def undo_in_dev(history: History) -> None:
    """The same in an environment that follows prod."""
    dev = history.random.choice(history.devs)
    with _others_stay(history, dev, "an undo"):
        _undone(history, dev)


def _undone(history: History, environment: str) -> None:
    found = history.recent(history.ways_back(environment))
    if found is None:
        return
    then, before = history.promoted[found.plan_id], history.contents(environment)
    history.say(f"undo of {found.plan_id} in {environment}")
    publishing = Publishing.of(history, found, before)
    with open_while_promised(history, found):
        done = undo_plan(history.plans.project(history.graph), found)
    _is_refused_once_dropped(history, found)
    history.say(f"  carried over: {dict(done.carried) or 'nothing'}")
    after, moved = history.contents(environment), _moved(found)
    others: Allowed = dict.fromkeys(moved, EVERYTHING)
    differ_only(before.cells, after.cells, others, f"undo of {found.plan_id}")
    if found.request.kept_rows is not KeptRows.DROP:
        keeps(before, after, f"undo of {found.plan_id}", but=then.before.of(RECEIPTS).keys())
    tells_what_changed(history, publishing, done.number, after)
    for name in moved:
        brought_back, kept = _after_undo(found, name, then, before.of(name))
        now, wanted = after.of(name), brought_back | kept
        if environment != PROD:
            wanted = _or_as_followed(history, environment, name, wanted, after)
        differ_only(
            {name: {at: wanted[at] for at in wanted if at in now or at in brought_back}},
            {name: {at: now[at] for at in wanted if at in now}},
            {},
            f"undo of {found.plan_id}",
        )


def _after_undo(plan: Plan, name: str, then: Promoted, before: Cells) -> tuple[Cells, Cells]:
    """Give the cells that an undo brings back, and those written since, which stay where they can."""
    planned = plan.model(name)
    replaced = planned is None or planned.build is Build.NEW_VERSION
    old, new = then.before.of(name), then.after.of(name)
    brought_back = {at: rows for at, rows in old.items() if replaced or rows != new.get(at)}
    since = set[Any]() if replaced else before.keys() - old.keys() - new.keys()
    return brought_back, {at: before[at] for at in since}


def abandon(history: History) -> None:
    """Abandon one of the open plans: nothing that is published changes."""
    found = history.recent_plan(*UNFINISHED)
    if found is None:
        return
    before = history.contents()
    history.say(f"abandon {found.plan_id}")
    abandon_plan(history.plans.project(history.graph), found)
    unchanged(before, history.contents(), f"abandoning {found.plan_id}")


def whole_plan(history: History) -> None:
    """Make a plan, apply and promote it."""
    asked = any_request(history) if history.random.random() < 0.7 else {}
    carry_out(history, made(history, PROD, **asked))


def carry_out(history: History, plan: Plan) -> None:
    """Apply a plan and promote it, if it is built."""
    if plan.is_empty:
        return
    done = applied(history, plan)
    if done.canaries:
        done = applied(history, plan)
    if done.status is PlanStatus.BUILT:
        accept_known_differences(history, plan)
        promoted(history, plan)


_ACCEPTED = {
    SMOOTHED: "within the tolerance",
    RECEIPTS: "a receipt moves here from a cell outside of the plan",
}
"""What a person accepts of a model: what its reader held until it is built anew; and the cells that receipts leave."""


def accept_known_differences(history: History, plan: Plan) -> None:
    """Accept, as a person, the differences of which the project knows how they come about."""
    store = history.world.store
    for check in store.checks.of_plan(plan.plan_id):
        if check.model in _ACCEPTED and check.stops:
            named, reason = (check.model, check.check), _ACCEPTED[check.model]
            stored = store.plans.get(plan.plan_id)
            accept_difference(store, stored, named, who="ann", reason=reason)
            history.say(f"accept {check.check} of {check.model}: {reason}")


def plan_for_dev(history: History, asked: Asked | None = None) -> None:
    """Plan for an environment that follows prod: nothing that another one publishes changes."""
    environments, dev = history.world.store.environments, history.random.choice(DEVS)
    if not environments.exists(dev):
        environments.save_environment(Environment(dev, protected=False, follows=PROD))
    plan = made(history, dev, **(any_request(history) if asked is None else asked))
    note_kept(history, dev, plan)
    if plan.is_empty:
        return
    with _others_stay(history, dev, f"apply of {plan.plan_id}"):
        there = history.contents(dev)
        publishing = Publishing.of(history, plan, there)
        done = history.plans.apply(history.graph, plan)
        history.say(f"apply {plan.plan_id}: it is {done.status}, left {dict(done.left)}")
        if done.status is PlanStatus.PROMOTED:
            history.note_promoted(plan.plan_id, there, history.contents(dev))
            tells_what_changed(history, publishing, done.number, history.contents(dev))


def drop_dev(history: History) -> None:
    """Drop an environment that follows prod; another one may get its name."""
    dev = history.chosen(history.devs)
    if dev is None:  # a process that died had dropped it
        return
    history.say(f"{dev} is dropped")
    with _others_stay(history, dev, "its end"):
        history.world.store.environments.drop_environment(dev)
        history.dropped |= {plan.plan_id for plan in history.ways_back(dev)}


@contextmanager
def _others_stay(history: History, dev: str, what: str) -> Iterator[None]:
    """Do something in an environment that follows prod: whatever comes of it, no other one publishes anything else."""
    before = {each: history.contents(each) for each in history.environments if each != dev}
    try:
        yield
    finally:
        for each, then in before.items():
            unchanged(then, history.contents(each), f"{what} in {dev}, in {each}")


def _is_refused_once_dropped(history: History, plan: Plan) -> None:
    if plan.plan_id in history.dropped:
        raise WrongError(f"{plan.plan_id} is taken back in an environment that it never changed")


def take_from_dev_to_prod(history: History) -> None:
    """Plan all that is declared for the other environment, then for prod, which takes over what is built."""
    plan_for_dev(history, asked={})
    carry_out(history, made(history, PROD))


def hold_or_release(history: History) -> None:
    """Hold the reader at what is published, which then stays for it; or let it read what is published since."""
    project = history.plans.project(history.graph)
    if history.held is None:
        hold = hold_consumer(project, READER, PROD, until=None, reason="the books close")
        history.held = history.contents(hold.environment)
        history.say(f"{READER} is held")
    else:
        held, history.held = history.held, None
        _, told = release_consumer(project, READER)
        history.say(f"{READER} is released, different are {dict(told)}")
        _tells_what_differs(history, held, told)


def _tells_what_differs(history: History, held: Contents, told: CellsByModel) -> None:
    now = history.contents()
    for name, cells in differing(held, now).items():
        untold = cells - starts(now.models[name], told[name])
        if name in held.models and untold:
            raise WrongError(
                f"{READER} reads {name} otherwise in {untold} since its release, untold"
            )


def _has_dev(history: History) -> bool:
    return bool(history.devs)


_NEEDS: Mapping[Verb, Callable[[History], object]] = {
    late_deliveries: lambda history: history.has_deliveries,
    fill_in_dev: _has_dev,
    apply: lambda history: history.plans_for(PROD, *UNBUILT),
    promote: lambda history: history.plans_for(PROD, PlanStatus.BUILT),
    abandon: lambda history: history.plans_for(PROD, *UNFINISHED),
    roll_back: lambda history: history.ways_back(PROD),
    undo: lambda history: history.ways_back(PROD),
    drop_dev: _has_dev,
    roll_back_in_dev: _has_dev,
    undo_in_dev: _has_dev,
    roll_back_to: lambda history: any(history.ways_back(one)[1:] for one in history.environments),
}
"""What there must be for a verb to do something."""


def is_possible(history: History, verb: Verb) -> bool:
    """Whether there is something that a verb is for."""
    return verb not in _NEEDS or bool(_NEEDS[verb](history))
