"""`backfill replay`: rebuild published cells from their recorded code and pins, and compare."""

from __future__ import annotations

from typing import Annotated

import typer

from backfill_assets.cli.exits import CHANGES, FAILED
from backfill_assets.cli.named_model import cells_named, published_model
from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, Env  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.engine.review.replaying import Replay
from backfill_assets.planning.review.replayed import Verdict
from backfill_assets.render.plan_words import naming_of
from backfill_assets.render.replayed import (
    replay_json,
    replay_lines,
    replay_summary,
    replay_text,
)


def replay(
    model: Annotated[str, typer.Argument(help="Such as marketing.campaign_performance.")],
    cell: Annotated[
        str, typer.Argument(help="A partition key, or FIRST..LAST: keys or dates, both included.")
    ],
    upstreams: Annotated[
        bool,
        typer.Option(
            "--upstreams", help="Also replay the upstream cells that they were computed from."
        ),
    ] = False,
    env: Env = "prod",
    as_json: AsJson = False,
) -> None:
    """Rebuild published cells from their recorded code and pins, and compare the checksums.

    The code comes from the snapshot that built the cells, the inputs are read at the versions that their batch
    read. Rows are computed into a folder that is removed; nothing is published, and the state is not
    changed. Cells that differ, or can't be rebuilt, are listed with the cause.

    Exit code: 0 if all cells are equal; 2 when a cell differs; 1 if a cell can't be replayed, or no cell is published.

    Example: backfill replay marketing.roi_analysis 2024-03-04

    Example: backfill replay commerce.revenue_monthly 2019-03-01 --upstreams --json
    """
    with looking() as at:
        run = at.published(env)
        declared, naming = published_model(run, model), naming_of(run.graph)
        cells = cells_named(declared.cadence, cell)
        replayed = [*Replay(run, upstreams=upstreams).published(declared, cells)]
    lines, summary = replay_lines(replayed), replay_summary(replayed)
    if as_json:
        print_json({"environment": env, "cells": [replay_json(line, naming) for line in lines]})
    else:
        for line in lines:
            say(replay_text(line, naming), indent=2)
        say(f"{model}: replayed {summary}")
    verdicts = {each.verdict for each in replayed}
    if Verdict.DIFFERS in verdicts:
        raise typer.Exit(CHANGES)
    if Verdict.IMPOSSIBLE in verdicts or not verdicts:
        raise typer.Exit(FAILED)
