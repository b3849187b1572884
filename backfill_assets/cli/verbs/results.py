"""`backfill results`: signed-off reports and evaluations, and the published cells that each uses."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.exits import FAILED
from backfill_assets.cli.lazy_commands import Helping
from backfill_assets.cli.named_model import cells_named, model_named, published_model
from backfill_assets.cli.operating import looking, operating
from backfill_assets.cli.options import AsJson, Env, Why  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.stored_plans import kept_plan
from backfill_assets.engine.review.results import changed_since, current_results, register_result
from backfill_assets.errors import RequestError
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted

if TYPE_CHECKING:
    from backfill_assets.cli.operating import Operating
    from backfill_assets.snapshots.result import Result

app = typer.Typer(cls=Helping, add_completion=False, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(help="The name that people use, such as 'report of 2024 Q1'.")]


@app.callback()
def results() -> None:
    """Register signed-off reports and evaluations with the cells that they rest on, and list them."""


@app.command()
def add(  # noqa: PLR0913, PLR0917 - one for each option
    name: Name,
    model: Annotated[str, typer.Argument(help="A model that the result uses.")],
    cells: Annotated[
        str, typer.Argument(help="A partition key, or FIRST..LAST: keys or dates, both included.")
    ],
    env: Env = "prod",
    plan: Annotated[
        str | None,
        typer.Option(
            metavar="ID", help="The result was computed on this built plan, not on published data."
        ),
    ] = None,
    rerun: Annotated[
        bool,
        typer.Option(
            "--rerun",
            help="A plan that changes these cells waits until the result is computed again.",
        ),
    ] = False,
    reason: Why = "",
    as_json: AsJson = False,
) -> None:
    """Register a result with the published cells of a model that it has used.

    A second registration replaces the first; a result that uses several models is registered once for each.

    Exit code: 0 when the result is registered; 1 when some of the cells are not published, or the plan is not built.

    Example: backfill results add "report of 2024 Q1" commerce.fact_orders 2024-01-01..2024-03-31 --rerun

    Example: backfill results add "report of 2024 Q1" commerce.fact_orders 2024-01-01..2024-03-31 --plan p1a2b3c4d5
    """
    with operating() as at:
        declared = (
            model_named(at.graph, model) if plan else published_model(at.published(env), model)
        )
        requested_cells = cells_named(declared.cadence, cells)
        plan_id = "" if plan is None else kept_plan(at.store, plan).plan_id
        target = (name, model, requested_cells)
        made = register_result(at.project, env, target, plan_id, reason, rerun=rerun)
        row = _row(at, made, IntervalSet.empty())
    if as_json:
        print_json(row)
        return
    say(
        f"{name}: rests on {row['model']} {row['cells']}{f', as {plan_id} has built them' if plan_id else ''}."
    )


@app.command("list")
def list_(env: Env = "prod", as_json: AsJson = False) -> None:
    """List results, and for each whether the cells that it has used are still unchanged.

    Exit code: 0 when all are; 1 when a result uses cells that have changed since.

    Example: backfill results list --json
    """
    with looking() as at:
        at.store.environments.get(env)
        rows = [
            _row(at, result, changed_since(at.store, at.graph, result))
            for result in current_results(at.store, env)
        ]
    stale = [row for row in rows if row["changed"]]
    if as_json:
        print_json({"environment": env, "results": rows})
    else:
        for row in rows:
            what = f"{row['name']}: {row['model']} {row['cells']}, by {row['who']} on {minute_text(row['at'])}"
            warning = f"; OUTDATED: {row['changed']} changed since" if row["changed"] else ""
            say(f"{what}{warning}", indent=2, style="red" if warning else None)
        say(f"{env}: {counted(len(rows), 'result')}, {len(stale)} outdated.")
    if stale:
        raise typer.Exit(FAILED)


@app.command()
def remove(name: Name, env: Env = "prod", as_json: AsJson = False) -> None:
    """Forget a result: no plan lists it any more.

    Exit code: 0 when the result is forgotten; 1 when there is no result of this name.

    Example: backfill results remove "report of 2024 Q1"
    """
    with operating() as at:
        names = sorted({result.name for result in at.store.results.of_environment(env)})
        gone = at.store.results.forget(env, name)
    if not gone:
        raise RequestError(
            found=f"there is no result '{name}' in {env}",
            expected=f"one of {', '.join(names)}"
            if names
            else "a registered result; there is none",
        )
    if as_json:
        print_json({"name": name, "registrations": gone})
        return
    say(f"{name}: forgotten, {counted(gone, 'registration')}.")


def _row(at: Operating, result: Result, changed: IntervalSet) -> dict[str, Any]:
    ranges = {"cells": result.cells, "changed": changed}
    named = {
        key: at.naming.in_full(result.model, cells) if cells else ""
        for key, cells in ranges.items()
    }
    return asdict(result) | named
