"""`backfill history`: list every plan, batch and pointer move of a model."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.named_model import cells_named, model_named
from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import Heading, print_json, print_table, say
from backfill_assets.cli.project import load_graph, store_looked_at
from backfill_assets.intervals.text import counted
from backfill_assets.render.plan_words import naming_of
from backfill_assets.settings import read_settings
from backfill_assets.snapshots.environment import plan_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.graph import Graph
    from backfill_assets.render.plan_words import Naming
    from backfill_assets.state.history import HistoryEntry

_PLAN, _BATCH = "plan", "batch"
_LINES = 30


def history(
    model: Annotated[str, typer.Argument(help="Such as marketing.campaign_performance.")],
    interval: Annotated[
        str | None,
        typer.Argument(
            help="Only entries that concern these cells: a partition key, or FIRST..LAST, both included."
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many entries are shown, the latest.",
            show_default="30; all with --json",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List every plan, batch and pointer move that touched a model, the newest last.

    Example: backfill history marketing.campaign_performance

    Example: backfill history marketing.roi_analysis 2024-03-01..2024-03-31 --json
    """
    settings = read_settings()
    graph = load_graph(settings)
    with store_looked_at(settings) as store:
        past = store.snapshots.last_cadence
        entries = store.history.of_model(model, _asked(graph, past, model, interval))
        if not entries:
            model_named(graph, model)
        naming = naming_of(graph, past)
        if as_json:
            listed = entries[-limit:] if limit else entries
            print_json([_json(naming, model, entry) for entry in listed])
            return
        _print(naming, model, entries, limit or _LINES)


def _asked(
    graph: Graph, past: Callable[[str], Cadence | None], model: str, interval: str | None
) -> IntervalSet | None:
    """Read the cells that are asked about, also of a model that is not declared any more."""
    if interval is None:
        return None
    before = None if model in graph.models else past(model)
    return cells_named(before or model_named(graph, model).cadence, interval)


def _json(naming: Naming, model: str, entry: HistoryEntry) -> dict[str, Any]:
    return {
        **asdict(entry),
        "cells": naming.ranges(model, entry.cells, limit=1000) if entry.cells else "",
    }


_HEADINGS = (
    Heading("at (UTC)"),
    Heading("what"),
    Heading("status", spare=1),
    Heading("environment", spare=3),
    Heading("plan"),
    Heading("batch", spare=5),
    Heading("cells"),
    Heading("by", spare=4),
    Heading("why", spare=2),
)


def _print(naming: Naming, model: str, entries: list[HistoryEntry], limit: int) -> None:
    shown = entries[-limit:]
    if len(shown) < len(entries):
        hidden = counted(len(entries) - len(shown), "earlier entry", "earlier entries")
        say(f"{hidden} left out: --limit shows more")
    if shown:
        print_table(_HEADINGS, [_row(naming, model, entry) for entry in shown])
    kinds = [entry.what for entry in entries]
    plans = len({entry.plan_id for entry in entries if entry.plan_id})
    moves = sum(kind not in {_PLAN, _BATCH} for kind in kinds)
    say(
        f"{model}: {counted(plans, 'plan')}, {counted(kinds.count(_BATCH), 'batch', 'batches')}, "
        f"{counted(moves, 'pointer move')}."
    )


def _row(naming: Naming, model: str, entry: HistoryEntry) -> tuple[str, ...]:
    return (
        f"{entry.at:%Y-%m-%d %H:%M:%S}",
        entry.what,
        entry.status,
        "workspace" if plan_of(entry.environment) else entry.environment,
        entry.plan_id or "",
        (entry.batch_id or "")[:8],
        naming.ranges(model, entry.cells, limit=2) if entry.cells else "",
        entry.who,
        entry.why,
    )
