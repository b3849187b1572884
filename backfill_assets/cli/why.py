"""`backfill why`: why a cell is, or is not, in the next work."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from backfill_assets.cli.output import out, print_json
from backfill_assets.cli.project import opened_run
from backfill_assets.intervals.parse_range import parse_interval
from backfill_assets.planning.explain import why as explain


def why(
    model: Annotated[str, typer.Argument(help="for example marketing.campaign_performance")],
    interval: Annotated[
        str, typer.Argument(help="a partition key, or START..END (dates, both included)")
    ],
    env: Annotated[str, typer.Option(help="the environment")] = "prod",
    as_json: Annotated[bool, typer.Option("--json", help="JSON alone on stdout")] = False,
) -> None:
    """Tell which branch of the rule fired for a cell, and follow it upstream.

    Example: backfill why commerce.fact_orders 2018-10-03
    """
    with opened_run(env) as run:
        cadence = run.graph.model(model).cadence
        if ".." in interval:
            start, _, end = interval.partition("..")
            asked = parse_interval(start, end, cadence)
        else:
            asked = cadence.cell(interval)
        reasons = explain(
            run.graph, run.view(), model, asked, now=run.clock(), reads=run.reads
        )
    if as_json:
        print_json([asdict(reason) for reason in reasons])
        return
    for reason in reasons:
        indent = "  " * reason.depth
        out.print(f"{indent}{reason.model} {reason.cells}: {reason.branch}: {reason.text}")
