"""`backfill map`: which snapshot made each published cell, model by model, over time."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated

import typer

from backfill_assets.cli.held import holds_json, of_hold, say_holds
from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, Env  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import out, print_json, say, writing
from backfill_assets.engine.project.holds import holds_of
from backfill_assets.engine.review.mapping import map_of
from backfill_assets.intervals.text import counted
from backfill_assets.planning.plan.selecting import selected
from backfill_assets.planning.plan.written_options import chosen
from backfill_assets.render.history_map import map_json, map_lines
from backfill_assets.render.history_map_html import map_html
from backfill_assets.render.plan_words import naming_of


def map(  # noqa: A001 - the verb's name
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Models, written as for `--select`; all unless given."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", metavar="FILE", help="Write one HTML file, without network or scripts."
        ),
    ] = None,
    env: Env = "prod",
    as_json: AsJson = False,
) -> None:
    """Show models over time by the snapshot that made each published cell.

    One line per model, as wide as the terminal: a letter for each snapshot of the model, the oldest A; signs for
    cells that are missing, stale, recorded as empty, and for the day of a cutoff. Below stand each snapshot's id,
    the plan that brought it, since when, and its cells.

    Example: backfill map

    Example: backfill map marketing.campaign_performance marketing.roi_analysis --html map.html
    """
    with looking() as at:
        run = at.published(env)
        hold = run.store.holds.of_environment(env)
        names = of_hold(selected(run.graph, chosen(models)), hold)
        naming = naming_of(run.graph)
        mapped, moment = map_of(run, names), run.clock()
        holds = holds_of(run.store, env, names)
    if html is not None:
        with writing(html):
            html.write_text(map_html(mapped, naming, env, moment), encoding="utf-8")
    if as_json:
        shown = {"models": map_json(mapped, naming), "holds": holds_json(holds, moment)}
        print_json({"environment": env, "at": moment, **shown})
        return
    if html is None:
        for line in map_lines(mapped, naming, out.width):
            say(line, indent=4)
    say_holds(holds, moment)
    snapshots = sum(len(model.made) for model in mapped)
    counts = f"{counted(len(mapped), 'model')}, {counted(snapshots, 'snapshot')}"
    say(f"{env}: {counts}{f', in {html}' if html else ''}.")
