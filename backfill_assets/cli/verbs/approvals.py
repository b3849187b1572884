"""`backfill approvals`: who approved a plan, whether it still counts, and what is still required."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, PlanId  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.engine.review.answers import Answers, answers
from backfill_assets.engine.review.approvals import approval_state
from backfill_assets.engine.review.before_publishing import before_publishing
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import counted
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.review.approval import Act
from backfill_assets.snapshots.stored_plan import NOT_ENDED, OPEN, PlanStatus

if TYPE_CHECKING:
    from backfill_assets.engine.review.acting import Judged
    from backfill_assets.engine.review.approvals import ApprovalState
    from backfill_assets.snapshots.signed_statement import SignedStatement


def approvals(
    plan: PlanId,
    as_json: AsJson = False,
) -> None:
    """List the approvals of a plan and the answers of consumers, and what is still required or awaited.

    For each approval it shows the principal, the time, and whether it counts for the plan as it is now. Once a plan is promoted, the
    signatures are listed as they were made.

    Exit code: 0, whatever is required.

    Example: backfill approvals p1a2b3c4d5
    """
    with looking() as at:
        stored = kept_plan(at.store, plan)
        signed = at.store.approvals.of_plan(stored.plan_id)
        is_open = stored.status in NOT_ENDED
        state = approval_state(at.project, stored.plan_id) if is_open else None
        parts = state.parts if state and as_json else None
        consumer_answers = (
            answers(at.project, stored.plan_id) if stored.status in OPEN else Answers()
        )
        line = before_publishing(at.project, read_plan(stored.content)).next_line if is_open else ""
    approvals_judged = state.approvals if state else ()
    every_judged = (*approvals_judged, *consumer_answers.signed)
    judged = {(each.signed.text, each.signed.signature): each for each in every_judged}
    if as_json:
        told = [_signed_json(row, judged.get((row.text, row.signature))) for row in signed]
        print_json(_json(stored.plan_id, told, state, parts) | _answers_json(consumer_answers))
        return
    for row in signed:
        say(_line(row, judged.get((row.text, row.signature))), indent=2)
    for given in consumer_answers.given:
        say(given.words, indent=2)
    for clause in consumer_answers.awaits:
        say(f"awaited: {clause}", indent=2)
    for name, cells in state.appended.items() if state else ():
        say(f"appended since it was planned, voids nothing: {name} {cells}", indent=2)
    for reason in state.lacking if state else ():
        say(f"still required: {reason}", indent=2)
    if line:
        say(line)
    stands = (
        (stored.status.value, counted(len(signed), "signature"))
        if state is None
        else (counted(len(state.approvals), "approval"),)
    )
    left = _left(state, consumer_answers, is_built=stored.status is PlanStatus.BUILT)
    say(f"{stored.plan_id}: {', '.join((*stands, *left))}.")


def _left(state: ApprovalState | None, consumer_answers: Answers, *, is_built: bool) -> list[str]:
    """Count what is required and awaited; under a policy also say that nothing is, once that is known."""
    required, awaits = len(state.lacking) if state else 0, len(consumer_answers.awaits)
    counts = ((required, "still required"), (awaits, "awaited"))
    left = [f"{count} {what}" for count, what in counts if count]
    return left or (["nothing more is required"] if state and is_built else [])


def _answers_json(consumer_answers: Answers) -> dict[str, object]:
    given = [asdict(each) for each in consumer_answers.given]
    touched = sorted({each.consumer for each in consumer_answers.touched})
    return {"answers": given, "awaits": list(consumer_answers.awaits), "touched": touched}


def _line(row: SignedStatement, judged: Judged | None) -> str:
    who = judged.signed.principal if judged else row.principal
    text = f"{row.act} by {who} on {minute_text(row.at)}"
    if judged is None:
        return text
    why = f": {judged.reason}" if judged.reason else ""
    if judged.void:
        return f"{text}{why}; void, {judged.void}"
    until = f"; valid until {minute_text(row.expires)} at most" if row.act == Act.APPROVE else ""
    return f"{text}{why}{until}"


def _signed_json(row: SignedStatement, judged: Judged | None) -> dict[str, object]:
    return {
        "act": row.act,
        "principal": judged.signed.principal if judged else row.principal,
        "at": row.at,
        "expires": row.expires,
        "void": judged.void if judged else None,
        "text": row.text,
        "signature": row.signature,
    }


def _json(
    plan_id: str,
    signed: list[dict[str, object]],
    state: ApprovalState | None,
    parts: dict[str, str] | None,
) -> dict[str, object]:
    return {
        "plan_id": plan_id,
        "signed": signed,
        "lacking": list(state.lacking) if state else None,
        "parts": parts,
        "appended": dict(state.appended) if state else None,
    }
