"""Tell consumers what becomes of plans that touch what they read: fill the outbox from events, and empty it.

Notices are sent after an operation is done, never within it: what can't be delivered now is tried again later,
by the next operation on a plan or by the sensor.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.project.channels import DeliveryError
from backfill_assets.engine.project.waiting import leased
from backfill_assets.engine.review.answers import answers
from backfill_assets.engine.review.compared import sums_of
from backfill_assets.engine.review.evidence import facts_of, report_of
from backfill_assets.engine.review.reviewed import built_plan
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.review.notices import (
    TOLD,
    next_attempt,
    notice_text,
    notice_title,
    told_consumers,
)
from backfill_assets.planning.rule.late_work import ASKED_BY
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets.state.database import StateBusyError, StateUnavailableError
from backfill_assets.state.locks import PlanLeasedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets.engine.project.project import InProject
    from backfill_assets.engine.review.facts import Facts
    from backfill_assets.engine.review.reviewed import BuiltPlan
    from backfill_assets.models.consumer import Consumer
    from backfill_assets.planning.review.touched import Touched
    from backfill_assets.snapshots.notice import Notice
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.snapshots.stored_plan import PlanEvent

_LEASE = "notices"
_log = logging.getLogger(__name__)


def send_notices(run: InProject) -> None:
    """Send every notice that is due; one that fails is tried again later, the log says why, and others are sent.

    An operation that is done does not fail with its notices: a state that is busy leaves them to the next.
    """
    store = run.store
    try:
        if store.notices.unsent(TOLD) or store.notices.due(run.clock()):
            with leased(run, _LEASE):
                _send_due(run)
    except (PlanLeasedError, StateBusyError, StateUnavailableError):
        return  # another process is at it, or the next operation will be


def _send_due(run: InProject) -> None:
    notices = run.store.notices
    for event in notices.unsent(TOLD):
        notices.put(event)
    for notice in notices.due(run.clock()):
        if not notice.consumer:
            _try(run, notice, _address)
    for notice in notices.due(run.clock()):
        if notice.consumer:
            _try(run, notice, _send)


def _try(run: InProject, notice: Notice, work: Callable[[InProject, Notice], None]) -> None:
    """Work on one notice; what fails is tried again later, and keeps no other notice back."""
    try:
        work(run, notice)
    except (StateBusyError, StateUnavailableError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one plan, others have notices too
        at = next_attempt(notice.asked_at, notice.attempts + 1, run.clock())
        _log.warning(
            "notice of '%s' of plan %s to %s: %s",
            *(notice.event, notice.plan_id, notice.consumer or "those whom it concerns", error),
        )
        why = error.why if isinstance(error, DeliveryError) else str(error) or type(error).__name__
        run.store.notices.failed(notice, why, at)


def _address(run: InProject, notice: Notice) -> None:
    """Find out whom an event concerns."""
    told = told_consumers(_concerned(run, _event_of(run, notice)))
    run.store.notices.address(notice, told)


def _concerned(run: InProject, event: PlanEvent) -> list[Consumer]:
    """Give the consumers for whom an event changes something, or may."""
    plan, declared = built_plan(run.project, event.plan_id), run.project.loaded.graph.consumers
    if not declared or not plan.plan.protected or _is_own_affair(plan, event):
        return []
    names = dict.fromkeys(each.consumer for each in _touched(run, event.plan_id))
    return [declared[name] for name in names if name in declared]


def _is_own_affair(plan: BuiltPlan, event: PlanEvent) -> bool:
    """Whether automation has built, or given up, a plan of its own: what it publishes is told alone."""
    return (event.event == PlanEventKind.BUILT and plan.is_automatic) or (
        event.event == PlanEventKind.ABANDONED and event.who == ASKED_BY
    )


def _touched(run: InProject, plan_id: str) -> tuple[Touched, ...]:
    """Find whom a plan touches: as it is built, as it was published, or as it was planned."""
    if run.store.plans.get(plan_id).status is PlanStatus.BUILT:
        return answers(run.project, plan_id).touched
    facts = facts_of(run, plan_id)
    if not facts.promoted:
        return facts.touched()
    before = {move.model: _published_before(run, move) for move in facts.promoted}
    told = (replace(each, cells=each.cells & before[each.model]) for each in facts.touched())
    return tuple(each for each in told if each.cells)


def _published_before(run: InProject, move: PointerMove) -> IntervalSet:
    """Give the cells that a publication has changed and that were published before; new ones concern no consumer."""
    if move.old is None:
        return IntervalSet.empty()
    if not run.store.versions.is_known(move.old.version):  # it was collected since
        return move.changed
    stamps = run.store.views.stamps_at(move.old, move.changed)
    return IntervalSet.of_pairs(sorted(cell for cell, _ in stamps))


def _send(run: InProject, notice: Notice) -> None:
    consumer = run.project.loaded.graph.consumers.get(notice.consumer)
    if consumer is None:
        run.store.notices.failed(notice, "the consumer is not declared any more", None)
        return
    event, changes = _event_of(run, notice), _changes(run, notice)
    environment = run.store.plans.get(notice.plan_id).environment
    text = notice_text(event, consumer, changes, report_of(run, notice.plan_id))
    run.project.deliver(notice.channel, notice_title(event, environment), text)
    run.store.notices.delivered(notice)


def _event_of(run: InProject, notice: Notice) -> PlanEvent:
    events = run.store.plans.events(notice.plan_id)
    return next(each for each in events if each.number == notice.number)


def _changes(run: InProject, notice: Notice) -> Iterator[str]:
    """Say what a plan changes for a consumer, a sentence for each model."""
    facts = facts_of(run, notice.plan_id)
    for reader in _touched(run, notice.plan_id):
        if reader.consumer == notice.consumer:
            columns = ", ".join(reader.columns) or "all columns"
            cells = ", ".join(facts.named(reader.model, reader.cells))
            yield f"{reader.model}: {columns} in {cells}{_numbers(facts, reader, notice.event)}."


def _numbers(facts: Facts, reader: Touched, event: str) -> str:
    """Say from which sums to which an event leads: the way back leads to those from before the plan."""
    sums = sums_of(facts, reader)
    if event in {PlanEventKind.ROLLED_BACK, PlanEventKind.UNDONE}:
        sums = {name: (before, after) for name, (after, before) in sums.items()}
    changes = [f"{name} {before} before, {after} after" for name, (before, after) in sums.items()]
    return f"; {'; '.join(changes)}" if changes else ""
