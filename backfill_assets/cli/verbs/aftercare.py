"""`backfill aftercare`: check the data that promoted plans have published, for as long as they are watched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.exits import FAILED
from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.engine.review.aftercare import look_after, watches
from backfill_assets.intervals.text import counted
from backfill_assets.planning.review.aftercare import NOT_JUDGED, watch_json
from backfill_assets.render.plan_life import next_line, watch_text

if TYPE_CHECKING:
    from backfill_assets.engine.review.aftercare import WatchedPlan


def aftercare(
    plan: Annotated[
        str | None,
        typer.Argument(
            help="Plan id, its first characters, or a file of `plan --out`; all watched plans unless given."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the data that watched plans have published: filled in time, number of rows, audits.

    `promote --watch 24h` starts a watch. A look reads only the state. It names cells that are missing although the next cells are due, and their
    readers; new cells whose number of rows is unlike that of the cells around them; and audits that have failed since. The sensor
    looks automatically, 24 times; the first look after the end is the last.

    Exit code: 0 when all is well, or nothing is watched; 1 when a look has found a problem: the command that rolls back is named.

    Example: backfill aftercare

    Example: backfill aftercare p1a2b3c4d5 --json
    """
    with looking() as at:
        plans = [*watches(at.store)] if plan is None else [kept_plan(at.store, plan).plan_id]
        looked = [look_after(at.project, plan_id) for plan_id in plans]
    wrong = [look for look in looked if look.found]
    if as_json:
        print_json({"plans": [_row(look) for look in looked]})
    else:
        _print(looked, wrong)
    if wrong:
        raise typer.Exit(FAILED)


def _row(look: WatchedPlan) -> dict[str, Any]:
    back = f"backfill rollback {look.plan_id}" if look.found else None
    return {"plan": look.plan_id, "way_back": back, **(watch_json(look.watch) or {})}


def _print(looked: list[WatchedPlan], wrong: list[WatchedPlan]) -> None:
    for look in looked:
        say(f"{look.plan_id} {watch_text(look.watch)}", style="red" if look.found else None)
        for line in look.found:
            say(line, indent=2)
    if looked:
        say(f"not judged: {NOT_JUDGED}")
    if wrong:
        say(next_line([f"backfill rollback {look.plan_id}" for look in wrong]))
    what = "all well" if not wrong else f"{len(wrong)} with problems"
    say(f"{counted(len(looked), 'plan')} looked at, {what}." if looked else "No plan is watched.")
