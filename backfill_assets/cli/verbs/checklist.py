"""`backfill checklist`: settle every item of a plan, before it computes and before it counts."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from backfill_assets.cli.exits import FAILED
from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, PlanId  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.stored_plans import plan_named
from backfill_assets.engine.review.before_publishing import before_publishing
from backfill_assets.engine.review.preflight import checklist_of
from backfill_assets.intervals.text import counted
from backfill_assets.planning.review.checklist import ChecklistPart, Item, Standing

_STYLES = {Standing.MET: "green", Standing.NOT_MET: "red", Standing.DECLARED: None}


def checklist(
    plan: PlanId,
    check: Annotated[
        bool, typer.Option("--check", help="End with 1 while an item is not met.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Settle each item of a plan: met, not met, or declared by a person.

    An item is computed where the state and the declarations determine it. Published rows whose source rows are gone stop `backfill apply`;
    every other item of the inventory does so where the policy says `inventory = "stop"`. The steps, with the command for each, are in docs/runbook.md, "A backfill, step by step".

    Exit code: 0, whatever the items are; with `--check` 1 while an item before publication is not met.

    Example: backfill checklist p1a2b3c4d5

    Example: backfill checklist p1a --check
    """
    with looking() as at:
        examined = plan_named(at.store, plan)
        items = checklist_of(at.project, examined)
        nearer = before_publishing(at.project, examined).next_line
    if as_json:
        print_json({"plan_id": examined.plan_id, "items": [asdict(item) for item in items]})
    else:
        _print(examined.plan_id, items, nearer)
    before = (item for item in items if item.part is not ChecklistPart.AFTERWARDS)
    if check and any(item.standing is Standing.NOT_MET for item in before):
        raise typer.Exit(FAILED)


def _print(plan_id: str, items: tuple[Item, ...], nearer: str) -> None:
    for part in ChecklistPart:
        say(part.value, style="bold")
        for item in items:
            if item.part is part:
                _print_item(item)
    of = {standing: sum(item.standing is standing for item in items) for standing in Standing}
    todo = next((item for item in items if item.todo.startswith("backfill ")), None)
    if todo is not None:
        line = nearer if todo.part is ChecklistPart.AFTERWARDS else f"Next: {todo.todo}"
        if line:
            say(line)
    say(
        f"{plan_id}: {counted(len(items), 'item')}: {of[Standing.MET]} met, "
        f"{of[Standing.DECLARED]} declared, {of[Standing.NOT_MET]} not met."
    )


def _print_item(item: Item) -> None:
    first, *others = item.texts
    line = f"  {item.standing.value:<8}  {item.name}: {first}"
    say(line, indent=12, style=_STYLES[item.standing])
    for text in others:
        say(f"            {text}", indent=12)
    if item.todo:
        before = "to do before `backfill apply`" if item.stops else "to do"
        say(f"            {before}: {item.todo}", indent=19)
