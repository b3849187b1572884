"""The queue in a history: plans are given to it, its sensor scans, and runs carry what it offers."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.engine.automatic.late_plan import refresh_late
from backfill_assets.engine.automatic.scan import ready_work
from backfill_assets.engine.automatic.scan_memory import ScanMemory
from backfill_assets.engine.automatic.serving import serve
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import queue_plan
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.queue.releasing import ReleaseKind
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import OPEN
from backfill_assets_tests.histories import verbs
from backfill_assets_tests.histories.checks import EVERYTHING, Allowed, differ_only, keeps
from backfill_assets_tests.histories.deliveries import ARRIVALS
from backfill_assets_tests.histories.history import MINUTE
from backfill_assets_tests.histories.published import WrongError
from backfill_assets_tests.histories.receipts import RECEIPTS
from backfill_assets_tests.histories.requests import any_request

if TYPE_CHECKING:
    from datetime import date

    from backfill_assets.engine.automatic.scan import ReadyWork
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.planning.queue.releasing import Offer
    from backfill_assets_tests.histories.history import History

_MOST_SCANS = 40
_TRIES = 2
"""How often a run of the same cells is released: one that failed comes once more."""
_FURTHEST_BACK = 4
"""The largest lookback that arrivals are edited to."""


def queue(history: History) -> None:
    """Give a plan to the queue: one of those that are not built, or a new one."""
    waiting = history.recent_plan(*verbs.UNBUILT) if history.random.random() < 0.5 else None
    plan = waiting or verbs.made(history, PROD, **any_request(history))
    if plan.is_empty:
        return
    history.say(f"queue {plan.plan_id}")
    verbs.note_kept(history, plan.environment, plan)
    queue_plan(Operation(project=history.plans.project(history.graph), plan=plan))


def control(history: History) -> None:
    """Pause, stop or resume one of the plans in the queue."""
    plan = history.chosen([queued.plan_id for queued in history.world.store.queue.queued_plans()])
    if plan:
        control = history.random.choice(list(Control))
        history.say(f"plan {plan} is {control.words}")
        history.world.store.queue.control_plan(plan, control, "ana")


def serve_queue(history: History) -> None:
    """Let the sensor scan and runs carry what it offers, until it offers nothing that was not tried."""
    history.say("the queue is served")
    before, tries = history.contents(), dict[object, int]()
    for _ in range(_MOST_SCANS):
        history.world.clock.now += MINUTE
        scanned = _scanned(history, history.scans)
        history.scans = scanned.memory
        offers = [offer for offer in scanned.offers if tries.get(_name(offer), 0) < _TRIES]
        if not offers:
            break
        for offer in offers:
            tries[_name(offer)] = tries.get(_name(offer), 0) + 1
            _carry(history, offer)
    else:
        raise WrongError(f"after {_MOST_SCANS} scans the queue still offers what was not tried")
    keeps(before, history.contents(), "the queue")
    _nothing_is_forgotten(history, scanned)
    if not tries:
        _nothing_is_left_out(history, scanned)


def _scanned(history: History, memory: ScanMemory) -> ReadyWork:
    return ready_work(history.plans.project(history.graph), memory)


def _name(offer: Offer) -> object:
    return offer.environment, offer.kind, offer.name, offer.cells, offer.plan_id, offer.mark


def _carry(history: History, offer: Offer) -> None:
    """Do what a released run does."""
    history.world.clock.now += MINUTE
    plan_or_model = offer.plan_id or offer.name or offer.mark[:8]
    cells = history.text(offer.name, offer.cells) if offer.name else ""
    history.say(f"  {offer.kind.value} {plan_or_model} {offer.name} {cells}")
    try:
        match offer.kind:
            case ReleaseKind.PLAN:
                _serve(history, offer)
            case ReleaseKind.FINISH:
                verbs.applied(history, _plan_of(history, offer))
            case ReleaseKind.LATE:
                refresh_late(history.world.open(history.graph))
            case ReleaseKind.DAILY | ReleaseKind.BACKFILL:
                world = replace(history.world, environment=offer.environment)
                world.fill(history.graph, offer.name, cells=offer.cells)
                history.world.runs = world.runs
    except BackfillAssetsError as error:
        history.say(f"    it is refused, {type(error).__name__}: {error}")


def _plan_of(history: History, offer: Offer) -> Plan:
    assert offer.plan_id is not None
    return read_plan(history.world.store.plans.get(offer.plan_id).content)


def _serve(history: History, offer: Offer) -> None:
    """Build cells of a plan: what prod publishes gets at most the gaps among them, and receipts may move into these."""
    plan, before = _plan_of(history, offer), history.contents()
    committed = history.in_flight(offer.name)
    serve(
        Operation(project=history.plans.project(history.graph), plan=plan), offer.name, offer.cells
    )
    gaps = history.starts(offer.name, offer.cells) - before.of(offer.name).keys()
    allowed: Allowed = {offer.name: EVERYTHING if offer.name == RECEIPTS else committed | gaps}
    differ_only(before.cells, history.contents().cells, allowed, f"serving {plan.plan_id}")


def _nothing_is_forgotten(history: History, scanned: ReadyWork) -> None:
    """What the sensor remembers hides no work from it."""
    anew = _scanned(history, ScanMemory())
    if _named(history, anew) != _named(history, scanned):
        raise WrongError(f"a first scan offers {anew.offers}, a later one {scanned.offers}")


def _named(history: History, scanned: ReadyWork) -> set[object]:
    """Name what a scan offers; once a state was lost, late work without its mark: a rebuilt state numbers cells anew."""
    offers = (replace(each, mark="") if history.states else each for each in scanned.offers)
    return {*map(_name, offers)}


def _may_wait(history: History, day: date) -> bool:
    """Whether there are no deliveries on a day, or on one of those before it that its cell may read."""
    read = {day - timedelta(days=back) for back in range(_FURTHEST_BACK + 1)}
    return bool(read & {*history.delivery_days} - {*history.delivered.days})


def _nothing_is_left_out(history: History, scanned: ReadyWork) -> None:
    """Where the queue has nothing to say, no cell of prod can be built that no open plan has."""
    if scanned.notes:
        return
    plans = [
        read_plan(stored.content) for stored in history.world.store.plans.latest(statuses=OPEN)
    ]
    for name, work in history.look().works.items():
        runnable = history.starts(name, work.runnable)
        for plan in plans:
            planned = plan.model(name)
            runnable -= history.starts(name, planned.cells) if planned else set()
        if name == ARRIVALS:
            runnable = {at for at in runnable if not _may_wait(history, at.date())}
        if runnable:
            raise WrongError(
                f"{name}: the queue offers nothing, and {sorted(runnable)} can be built"
            )
