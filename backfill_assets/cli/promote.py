"""`backfill promote`: publish what a plan has built in its environment, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.asking import Yes, confirm
from backfill_assets.cli.evidence import told_evidence
from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, Why  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import counted, err, print_json, say
from backfill_assets.cli.progress import shown
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.cli.telling import tell_quietly
from backfill_assets.cli.told_cells import cells_json, cells_told, say_cells
from backfill_assets.engine.plans.plan_verbs import promote_plan
from backfill_assets.render.actual import actual_text
from backfill_assets.render.plan_life import next_commands
from backfill_assets.render.plan_words import instant_text
from backfill_assets.snapshots.stored_plan import PlanStatus

if TYPE_CHECKING:
    from backfill_assets.cli.operating import Operating
    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.planning.plan.plan import Plan

_PROMOTED = PlanStatus.PROMOTED.value


def promote(
    plan: Annotated[str, typer.Argument(help="Its id; the beginning will do.")],
    yes: Yes = False,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Move every pointer of a plan at once, so that its environment reads what the plan has built.

    Readers see the old or the new in all models, never a mix. Refused, with the list, if a planned cell is not ready with its
    audits, or if something that the plan reads or rewrites has moved. Cells that were published meanwhile are carried over.

    Exit code: 0 when it is published, now or before, 1 when it was refused: then nothing was.

    Example: backfill promote p1a2b3c4d5 --reason "agreed with finance"

    Example: backfill promote p1a2b3c4d5 --yes --json
    """
    with operating() as at:
        named = kept_plan(at.store, plan).plan
        if at.store.plans.get(named.plan_id).status is PlanStatus.PROMOTED:
            _already(at, named, as_json=as_json)
            return
        at.may_change(named.environment)
        changed = len(named.models) + len(named.removed)
        _confirm(named, changed, yes=yes)
        say(f"promoting {named.plan_id}, run {at.run_id}", to=err)
        with shown(at.graph, {}) as listener:
            why = reason or named.request.reason
            promoted = promote_plan(at.working(listener), named, why)
        appended = _named(at, promoted)
        told = cells_told(at, named, promoted.number)
        actual = at.taken(named)
        evidence = told_evidence(at, named.plan_id)
        tell_quietly(at, named.environment)
    if as_json:
        print_json(
            {
                "plan_id": named.plan_id,
                "environment": named.environment,
                "number": promoted.number,
                "appended": appended,
                "removed": list(promoted.removed),
                **cells_json(at.naming, told),
            }
        )
        return
    say_cells(at.naming, told)
    for name, cells in appended.items():
        say(f"appended after approval: {name} {cells}", indent=2)
    for name in promoted.removed:
        say(f"removed: {name}", indent=2)
    say(actual_text(named, actual), indent=2)
    say(evidence)
    commands = next_commands(named.plan_id, PlanStatus.PROMOTED.value)
    say(f"Next: {', or '.join(commands)} to go back")
    say(f"{named.environment}: reads {counted(changed, 'model')} as {named.plan_id} built them.")


def _already(at: Operating, plan: Plan, *, as_json: bool) -> None:
    """Say when and by whom a plan was promoted before."""
    plan_id = plan.plan_id
    events = [event for event in at.store.plans.events(plan_id) if event.event == _PROMOTED]
    done = events[-1] if events else None
    if as_json:
        number = done.detail.get("number") if done else None
        print_json(
            {
                "plan_id": plan_id,
                "promoted_at": done.at if done else None,
                "promoted_by": done.who if done else None,
                "number": number,
                **cells_json(at.naming, cells_told(at, plan, number)),
            }
        )
        return
    told = f" on {instant_text(done.at)} by {done.who}" if done else ""
    say(f"{plan_id}: nothing to do: it was promoted{told}.")


def _confirm(plan: Plan, changed: int, *, yes: bool) -> None:
    effect = (
        f"promote plan {plan.plan_id}: {plan.environment} reads {counted(changed, 'model')} "
        "otherwise from now on"
    )
    if plan.protected:
        confirm(effect, yes=yes)


def _named(at: Operating, promoted: Outcome) -> dict[str, str]:
    return {
        name: at.naming.ranges(name, cells, limit=len(cells))
        for name, cells in promoted.carried.items()
    }
