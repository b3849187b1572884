"""`backfill apply`: build a plan's cells in its workspace."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.asking import Yes, confirm
from backfill_assets.cli.exits import DONE, FAILED, WAITS
from backfill_assets.cli.looking import say_note
from backfill_assets.cli.operating import Operating, operating
from backfill_assets.cli.options import AsJson, Why  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import Heading, err, print_json, print_table, say
from backfill_assets.cli.plan_view import say_nothing_planned, show_plan
from backfill_assets.cli.progress import shown
from backfill_assets.cli.queueing import into_queue
from backfill_assets.cli.stored_plans import plan_named
from backfill_assets.cli.telling import tell_quietly
from backfill_assets.cli.told_cells import say_cells
from backfill_assets.engine.plans.estimating import estimated
from backfill_assets.engine.plans.making import left_before, make_plan
from backfill_assets.engine.plans.plan_verbs import apply_plan
from backfill_assets.engine.plans.told_cells import cells_json, cells_told
from backfill_assets.engine.project.events import seconds_by_step
from backfill_assets.engine.review.before_publishing import before_publishing
from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import counted
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.render.actual import Actual, actual_text
from backfill_assets.render.plan_life import (
    Progress,
    audit_lines,
    blocks,
    commands_of,
    next_line,
    progress,
)
from backfill_assets.render.plan_words import estimate_text
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.plans.outcome import Outcome
    from backfill_assets.engine.review.before_publishing import BeforePublishing
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.planning.plan.plan import Estimate, Plan
    from backfill_assets.render.plan_words import Naming


def apply(  # noqa: PLR0913, PLR0917 - one option for each thing that can be asked
    plan: Annotated[
        str | None,
        typer.Argument(help="Plan id, or a file of `plan --out`; without it a plan is made."),
    ] = None,
    env: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Environment of a plan that is made here; prod by default.",
        ),
    ] = None,
    queue: Annotated[
        bool,
        typer.Option("--queue", help="Let the sensor build the plan through Dagster's run queue."),
    ] = False,
    off_peak: Annotated[
        str | None,
        typer.Option(
            metavar="HOURS", help="Only these hours, as '22:00-06:00 Europe/Berlin'; needs --queue."
        ),
    ] = None,
    yes: Yes = False,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Build the cells of a plan in its workspace; promote it at once in an environment that is not protected.

    Stop it at any time: the same command builds exactly the remaining cells. If a batch fails, the next run builds its cells, and models that
    do not read them continue. A protected environment reads the old data until `backfill promote`.

    With `--queue` the command only opens the plan and returns: the gap_fill_sensor releases the plan, batch by batch, under the limits,
    and ends it. `backfill show PLAN --watch` follows it.

    A plan with canaries builds the canaries first and ends with 3: compare them with `backfill diff PLAN`; the same command builds the rest.

    Exit code: 0 when the whole plan is built, or queued; 3 when its canaries are built; 1 when a batch failed, cells are missing, published cells fail a changed audit or a check refuses the built cells, 130 when it was interrupted.

    Example: backfill apply p1a2b3c4d5

    Example: backfill apply --env dev_refunds --yes

    Example: backfill apply p1a2b3c4d5 --queue --off-peak "22:00-06:00 Europe/Berlin"
    """
    if off_peak is not None and not queue:
        raise RequestError(
            found="--off-peak is for plans in the queue: give --queue too, or start this command "
            "in those hours"
        )
    with operating() as at:
        if plan is not None:
            chosen = _kept(at, plan, env)
        else:
            chosen = _made(at, env or PROD, reason, as_json=as_json)
            _confirmed(at, chosen, yes=yes)
        if queue:
            into_queue(at, chosen, off_peak, reason or chosen.request.reason, as_json=as_json)
            return
        ended = _applied(at, chosen, reason or chosen.request.reason)
        if as_json:
            print_json(ended.plain())
        else:
            _report(ended)
    applied = ended.applied
    if applied.canaries and not (applied.failed or applied.refused):
        raise typer.Exit(WAITS)
    if applied.left or applied.failed or applied.refused or blocks(applied.audited):
        raise typer.Exit(FAILED)


def _kept(at: Operating, named: str, env: str | None) -> Plan:
    """Read a plan; refuse it if it is for another environment than `--env` names."""
    plan = plan_named(at.store, named)
    if env not in {None, plan.environment}:
        raise RequestError(
            found=f"plan {plan.plan_id} is for {plan.environment}, and --env {env} was given; "
            "nothing was applied",
            do=f"leave --env out, or make a plan for {env}: `backfill plan {env}`",
        )
    return plan


@dataclass(frozen=True, slots=True)
class _Ended:
    """The result of an apply."""

    plan: Plan
    applied: Outcome
    done: tuple[Progress, ...]
    actual: Actual
    naming: Naming
    rest: Estimate | None
    cells: Mapping[str, CellsByModel]
    before: BeforePublishing

    @property
    def next(self) -> tuple[str, ...]:
        """What can be done now."""
        if self.applied.canaries and not self.applied.failed:
            return commands_of(self.plan.plan_id, ("diff", "apply", "abandon"))
        return self.before.commands

    def plain(self) -> dict[str, Any]:
        """Give it as JSON has it."""
        return {
            "plan_id": self.plan.plan_id,
            "environment": self.plan.environment,
            "status": self.applied.status.value,
            "progress": [asdict(model) for model in self.done],
            **cells_json(self.naming, self.cells),
            "canaries": self.naming.listed(self.applied.canaries),
            "appended": self.naming.listed(self.applied.carried),
            "left": {name: str(cells) for name, cells in self.applied.left.items()},
            "errors": [failure.error for failure in self.applied.failed],
            "audited": {
                name: [asdict(result) for result in results]
                for name, results in self.applied.audited.items()
            },
            "refused": self.applied.refused or None,
            "seconds": {
                name: seconds_by_step(events) for name, events in self.applied.events.items()
            },
            "estimate": asdict(self.plan.estimate) if self.plan.estimate else None,
            "actual": asdict(self.actual),
            "estimate_after_canaries": asdict(self.rest) if self.rest else None,
            "control": self.before.control.value,
            "next": list(self.next),
        }


def _made(at: Operating, env: str, reason: str, *, as_json: bool) -> Plan:
    """Make a plan; of an empty one say what is left, and end with the exit code of `backfill plan`."""
    request = PlanRequest(environment=env, asked_by=str(at.who), reason=reason)
    made = make_plan(at.project, request, told=say_note)
    if not made.plan.is_empty:
        return made.plan
    remaining = left_before(at.project, made)
    if remaining.warning:
        say(remaining.warning, to=err, indent=2)
    if as_json:
        status = remaining.words if remaining.is_open else "nothing to do"
        print_json({"plan_id": None, "environment": env, "status": status})
    else:
        say_nothing_planned(made.plan, remaining)
    raise typer.Exit(WAITS if remaining.is_open else DONE)


def _confirmed(at: Operating, proposed: Plan, *, yes: bool) -> None:
    """Show a plan, and ask once."""
    env, naming = proposed.environment, at.naming_of(proposed)
    show_plan(at, proposed, after=("Nothing has been written yet.",), aside=True)
    cells = sum(naming.count(planned.model, planned.cells) for planned in proposed.models)
    built = f"build up to {counted(cells, 'cell')} of {counted(len(proposed.models), 'model')}"
    if proposed.protected and proposed.gates:
        confirm(f"{built} in its workspace: {env} stays as it is until `promote`", yes=yes)
    else:
        confirm(f"{built} and publish them in {env}", yes=yes)


def _applied(at: Operating, plan: Plan, why: str) -> _Ended:
    at.prepare(plan)
    say(
        f"plan {plan.plan_id} for {plan.environment}, run {at.run_id}; stop it at any time, "
        f"`backfill apply {plan.plan_id}` builds the rest",
        to=err,
    )
    naming = at.naming_of(plan)
    remaining = {model.model: model.planned - model.done for model in _progress(at, plan, naming)}
    with shown(at.graph, remaining) as listener:
        applied = apply_plan(at.working(listener), plan, why)
    actual = at.taken(plan)
    if applied.status is not PlanStatus.APPLYING:
        estimate = asdict(plan.estimate) if plan.estimate else None
        detail = {"estimate": estimate, "actual": asdict(actual)}
        at.store.plans.tell(plan.plan_id, PlanEventKind.MEASURED, who=str(at.who), detail=detail)
    if applied.status is PlanStatus.PROMOTED:
        tell_quietly(at, plan.environment)
    cells = cells_told(at, plan, applied.number)
    rest = estimated(at.project, plan).estimate if applied.canaries else None
    before, done = before_publishing(at.project, plan), _progress(at, plan, naming)
    return _Ended(plan, applied, done, actual, naming, rest, cells, before)


def _progress(at: Operating, plan: Plan, naming: Naming) -> tuple[Progress, ...]:
    store = at.store
    return progress(plan, naming, store.batches.of_plan(plan.plan_id), store.limits.in_flight())


_HEADINGS = (
    Heading("model"),
    Heading("built", number=True),
    Heading("planned", number=True),
    Heading("batches", number=True, spare=1),
    Heading("failed", number=True),
    Heading("rows", number=True, spare=2),
)


def _report(ended: _Ended) -> None:
    numbers = [
        (model.done, model.planned, model.batches, model.failed, model.rows) for model in ended.done
    ]
    rows = zip((model.model for model in ended.done), numbers, strict=True)
    print_table(_HEADINGS, [(name, *(f"{number:,}" for number in row)) for name, row in rows])
    say_cells(ended.naming, ended.cells)
    for name, cells in ended.applied.carried.items():
        say(f"appended {name}: {ended.naming.ranges(name, cells)}", indent=2)
    for line in audit_lines(ended.applied.audited):
        say(line, indent=2)
    _say_taken(ended)
    status = ended.applied.status
    if ended.applied.failed:
        say(f"Next: backfill batches --failed, then backfill apply {ended.plan.plan_id}")
    elif ended.applied.refused:
        say(f"`promote` would refuse: {ended.applied.refused}")
    elif blocks(ended.applied.audited):
        say(
            "Next: restate the cells that fail in a new plan, or change the audit; then "
            f"backfill abandon {ended.plan.plan_id}"
        )
    elif ended.next:
        say(next_line(ended.next))
    built = sum(model.done for model in ended.done)
    failed = counted(len(ended.applied.failed), "batch", "batches")
    control = ended.before.control
    stands = f"{status.value}{f', {control.words}' if control.holds else ''}"
    canaries = ended.applied.canaries and not (ended.applied.failed or ended.applied.refused)
    rest = "; the same `apply` builds the rest" if canaries else ""
    say(f"{ended.plan.plan_id}: {stands}, {counted(built, 'cell')} built, {failed} failed{rest}.")


def _say_taken(ended: _Ended) -> None:
    """Say what it has taken so far, and what was spared, or is expected of the rest."""
    say(actual_text(ended.plan, ended.actual), indent=2)
    if ended.rest is not None:
        text = f"after its canaries, all of it is expected to take {estimate_text(ended.rest)}"
        say(text, indent=2)
    if spared := sum(ended.applied.spared.values()):
        say(f"spared {counted(spared, 'cell')}: what they read did not change", indent=2)
