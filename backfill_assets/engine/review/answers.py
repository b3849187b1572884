"""Answers of consumers to a plan: given, and awaited before it is published."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.engine.project.gate import gate_in
from backfill_assets.engine.review.acting import sign, verified_statements
from backfill_assets.engine.review.bound_parts import bound_parts
from backfill_assets.engine.review.results import results_awaited
from backfill_assets.engine.review.reviewed import built_plan, refuse_unbuilt
from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.models.consumer import OnChange
from backfill_assets.planning.review.answers import Answer, awaited, built_at, told_answers
from backfill_assets.planning.review.approval import Act
from backfill_assets.planning.review.touched import ChangedModel, touched
from backfill_assets.snapshots.stored_plan import PlanEventKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from backfill_assets.engine.project.gate import Gate
    from backfill_assets.engine.project.project import Project
    from backfill_assets.engine.review.acting import Judged
    from backfill_assets.engine.review.reviewed import BuiltPlan
    from backfill_assets.models.consumer import Consumer
    from backfill_assets.planning.review.touched import Touched

_HOLDS = timedelta(days=3650)  # an answer is void once the plan is another, not after a time
_CONSUMER = "for consumer"
_ACTS = {PlanEventKind.ACKNOWLEDGED: Act.ACKNOWLEDGE, PlanEventKind.OBJECTED: Act.OBJECT}


class UnansweredError(BackfillAssetsError):
    """Consumers have not answered what they asked to be asked, or object."""

    def __init__(self, plan_id: str, replies: Answers) -> None:
        self.plan_id, self.awaits = plan_id, replies.awaits
        answering = "".join(
            f"`backfill acknowledge {plan_id} {shlex.quote(name)}` answers for {name}, "
            for name in replies.unanswered
        )
        super().__init__(
            f"plan {plan_id} may not be published yet, nothing was: {'; '.join(replies.awaits)}. "
            f"{answering}`backfill approvals {plan_id}` lists what is awaited"
        )


@dataclass(frozen=True, slots=True)
class Answers:
    """What consumers have answered to a plan as it is built, and what is awaited.

    Attributes:
        given: those that count, the earliest first.
        awaits: what holds its promotion, in words.
        touched: for whom of those who ask, or have answered, it changes something, and what.
        unanswered: consumers whose acknowledgement would end a part of what is awaited.
        signed: under a policy, each that was signed, and why it does not count.
    """

    given: tuple[Answer, ...] = ()
    awaits: tuple[str, ...] = ()
    touched: tuple[Touched, ...] = ()
    unanswered: tuple[str, ...] = ()
    signed: tuple[Judged, ...] = ()


def answers(project: Project, plan_id: str) -> Answers:
    """Tell what consumers have answered, and what a promotion awaits of them.

    Nothing is awaited for what no person publishes, nor in an environment that is not protected.

    Raises:
        PolicyMissingError: the environment was under a policy before, and this process has none.
    """
    of, consumers = built_plan(project, plan_id), project.loaded.graph.consumers
    if not of.plan.protected or of.is_automatic:
        return Answers()
    events, now = of.store.plans.events(plan_id), project.clock()
    gate = gate_in(project, of.plan.environment)
    signed = () if gate is None else tuple(_signed_answers(of, gate))
    given = (
        told_answers(events)
        if gate is None
        else tuple(_answer(each) for each in signed if not each.void)
    )
    answered, results = {answer.consumer for answer in given}, results_awaited(of)
    asking = [
        consumer
        for consumer in consumers.values()
        if consumer.on_change is not OnChange.NONE or consumer.name in answered
    ]
    readers = _touched(of, asking) if asking else ()
    concerned = [consumers[name] for name in dict.fromkeys(each.consumer for each in readers)]
    unanswered = awaited(concerned, given, built_at(events), now)
    awaits = (*unanswered.values(), *results)
    return Answers(given, awaits, readers, tuple(unanswered), signed)


def refuse_unanswered(project: Project, plan_id: str) -> tuple[Judged, ...]:
    """Refuse to publish a plan while a consumer that it touches has to answer, or objects.

    Returns:
        Its signed answers, judged; none where no policy is set.

    Raises:
        UnansweredError: it has; every one is named.
    """
    replies = answers(project, plan_id)
    if replies.awaits:
        raise UnansweredError(plan_id, replies)
    return replies.signed


def answer(
    project: Project, plan_id: str, consumer: str, event: PlanEventKind, reason: str = ""
) -> Answer:
    """Answer for a consumer to a plan that is built; under a policy, its owner signs.

    Args:
        project: who answers.
        plan_id: the plan.
        consumer: its name.
        event: `ACKNOWLEDGED` or `OBJECTED`.
        reason: in words; an objection has one.

    Raises:
        RequestError: there is no such consumer, the plan changes nothing for it, is not built, or the
            objection has no reason.
        UnsignedActError: a policy is set, and there is no way to sign here.
        SignatureError: the key is not that of an allowed signer.
        NotEntitledError: another principal owns the consumer.
    """
    _refuse(project, plan_id, consumer, event, reason)
    of = built_plan(project, plan_id)
    gate, who = gate_in(project, of.plan.environment), project.who
    if gate is not None:
        review = of.under(gate)
        parts = {**bound_parts(review), _CONSUMER: consumer}
        may = _may_answer(gate, project.loaded.graph.consumers[consumer])
        until = project.clock() + _HOLDS
        who = sign(review, _ACTS[event], until, parts, reason, may).principal
    detail = {"consumer": consumer}
    answer_event = project.store.plans.tell(plan_id, event, who=who, why=reason, detail=detail)
    return Answer(consumer, who, answer_event.at, event == PlanEventKind.ACKNOWLEDGED, reason)


def _refuse(
    project: Project, plan_id: str, consumer: str, event: PlanEventKind, reason: str
) -> None:
    graph, stored = project.loaded.graph, project.store.plans.get(plan_id)
    graph.consumer(consumer)
    refuse_unbuilt(stored)
    if event == PlanEventKind.OBJECTED and not reason.strip():
        raise RequestError(
            found="the objection has no reason", do="state with --reason what has to change"
        )
    names = sorted(
        {each.consumer for each in _touched(built_plan(project, plan_id), graph.consumers.values())}
    )
    if consumer not in names:
        raise RequestError(
            found=f"plan {plan_id} changes nothing that consumer '{consumer}' reads",
            expected=f"one of {', '.join(names)}"
            if names
            else "no answer: the plan affects no consumer",
        )


def _may_answer(gate: Gate, consumer: Consumer) -> frozenset[str]:
    """Give who answers for a consumer: its owner, or for a team every allowed signer."""
    return frozenset({consumer.owner} if "@" in consumer.owner else gate.signers.principals())


def _signed_answers(of: BuiltPlan, gate: Gate) -> Iterator[Judged]:
    """Give every signed answer, judged: those of people who may answer count, to the plan as it is now."""
    review, consumers = of.under(gate), of.project.loaded.graph.consumers
    for each in verified_statements(review, *_ACTS.values(), besides=_CONSUMER):
        consumer = consumers.get(each.besides)
        if each.void:
            yield each
        elif consumer is None:
            yield replace(each, void=f"consumer '{each.besides}' is not declared")
        elif each.signed.principal not in _may_answer(gate, consumer):
            yield replace(each, void=f"{consumer.owner} owns consumer '{consumer.name}'")
        else:
            yield each


def _answer(each: Judged) -> Answer:
    signed, agrees = each.signed, each.signed.act == Act.ACKNOWLEDGE
    return Answer(each.besides, signed.principal, signed.at, agrees, each.reason)


def _touched(of: BuiltPlan, consumers: Collection[Consumer]) -> tuple[Touched, ...]:
    """Find those of the consumers for whom published cells differ afterwards, column by column."""
    graph, changed = of.project.loaded.graph, dict[str, ChangedModel]()
    read = {reading.model for consumer in consumers for reading in consumer.reads}
    for planned in of.plan.models:
        if planned.model not in read:
            continue
        if difference := of.changing(planned):
            changed[planned.model] = difference
    view = of.store.views.of(of.plan.environment)
    for name in of.plan.removed:
        if name in view.models:
            changed[name] = ChangedModel(view.ready(name))
    cadences = {name: model.cadence for name, model in graph.models.items()}
    return touched(consumers, changed, cadences, of.clock())
