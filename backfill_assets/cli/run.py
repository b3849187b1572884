"""`backfill run`: fill what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.output import err, out, print_json, print_table
from backfill_assets.cli.progress import shown
from backfill_assets.cli.project import opened_run
from backfill_assets.cli.selecting import selected
from backfill_assets.execution.events import Committed, Failed, NeedsPlan, Waiting
from backfill_assets.execution.graph_run import run_graph
from backfill_assets.intervals.parse_range import OutsideLifeError, parse_range
from backfill_assets.intervals.required import required
from backfill_assets.planning.needs_work import needs_work
from backfill_assets.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from backfill_assets.execution.events import Event
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet


def run(
    select: Annotated[str, typer.Option(help="models, comma separated; all by default")] = "",
    start: Annotated[str | None, typer.Option(help="first date or instant")] = None,
    end: Annotated[
        str | None, typer.Option(help="last date (included), or instant (excluded)")
    ] = None,
    env: Annotated[str, typer.Option(help="the environment")] = "prod",
    as_json: Annotated[bool, typer.Option("--json", help="JSON alone on stdout")] = False,
) -> None:
    """Fill what is missing, upstream first, in audited batches. Ready cells are left alone.

    Exit code 0 when everything asked for is ready, 1 when a batch failed or cells still lack.

    Example: backfill run --select commerce.orders --start 2018-10-01 --end 2018-10-31
    """
    settings = Settings()
    with opened_run(env, settings=settings) as opened:
        targets = _targets(opened, selected(opened.graph, select), start, end)
        todo = _missing(opened, targets)
        if not any(todo.values()):
            _nothing(env, len(targets), as_json=as_json)
            return
        err.print(f"run {opened.run_id}: resume with the same command at any time")
        with shown(opened.graph, todo) as listener:
            told = run_graph(opened, targets, listener, batches_at_once=settings.max_batches)
        lacking = _missing(opened, targets)
    _report(env, told, lacking, as_json=as_json)
    if any(lacking.values()) or _failures(told):
        raise typer.Exit(1)


def _targets(
    opened: RunContext, names: tuple[str, ...], start: str | None, end: str | None
) -> dict[str, IntervalSet]:
    """Read the range in each model's own zone and grid, and say where it was rounded or clipped.

    Raises:
        OutsideLifeError: the range lies outside the life of every model asked for.
    """
    targets: dict[str, IntervalSet] = {}
    outside: OutsideLifeError | None = None
    for name in names:
        cadence = opened.graph.model(name).cadence
        window = None
        if (start or end) and cadence.start is not None:
            try:
                asked = parse_range(
                    start or cadence.start, end or cadence.end or opened.clock(), cadence
                )
            except OutsideLifeError as error:
                outside = error
                err.print(f"{name}: left out: {error}")
                continue
            if asked.note:
                err.print(f"{name}: {asked.note}")
            window = asked.interval
        targets[name] = _required(cadence, window, opened.clock())
    if outside is not None and not targets:
        raise outside
    return targets


def _required(cadence: Cadence, window: Interval | None, now: datetime) -> IntervalSet:
    start, end = (window.start, window.end) if window else (None, None)
    return required(cadence, start=start, end=end, now=now)


def _missing(opened: RunContext, targets: Mapping[str, IntervalSet]) -> dict[str, int]:
    view, now = opened.view(), opened.clock()
    return {
        name: model.cadence.count(needs_work(opened.graph, view, model, now=now).gaps & target)
        for name, target in targets.items()
        for model in (opened.graph.model(name),)
    }


def _nothing(env: str, models: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"environment": env, "models": {}, "missing": 0})
        return
    out.print(f"{env}: nothing to do, every required cell of {models} models is ready.")


def _failures(told: Mapping[str, tuple[Event, ...]]) -> list[Failed]:
    return [one for events in told.values() for one in events if isinstance(one, Failed)]


def _report(
    env: str,
    told: Mapping[str, tuple[Event, ...]],
    lacking: Mapping[str, int],
    *,
    as_json: bool,
) -> None:
    rows = {name: _summary(events, lacking[name]) for name, events in told.items()}
    if as_json:
        print_json({"environment": env, "models": rows, "missing": sum(lacking.values())})
        return
    print_table(
        ("model", "cells#", "batches#", "rows#", "failed#", "waiting#", "still missing#"),
        [
            (name, *(f"{row[key]:,}" for key in _COUNTS))
            for name, row in rows.items()
        ],
    )
    failed, missing = len(_failures(told)), sum(lacking.values())
    if missing:
        out.print("Next: backfill status | backfill why MODEL CELL | backfill run")
    filled = sum(row["cells"] for row in rows.values())
    out.print(f"{env}: {filled:,} cells filled, {failed} batches failed, {missing:,} cells missing.")


_COUNTS = ("cells", "batches", "rows", "failed", "waiting", "missing")


def _summary(events: tuple[Event, ...], missing: int) -> dict[str, Any]:
    done = [one for one in events if isinstance(one, Committed)]
    failed = [one for one in events if isinstance(one, Failed)]
    return {
        "cells": sum(len(one.contents) for one in done),
        "batches": len(done),
        "rows": sum(one.rows for one in done),
        "failed": len(failed),
        "waiting": sum(isinstance(one, Waiting) for one in events),
        "needs_plan": sum(isinstance(one, NeedsPlan) for one in events),
        "missing": missing,
        "errors": [one.error for one in failed],
        "seconds": {
            step: round(sum(getattr(one.timing, step) for one in done), 3)
            for step in ("compute", "audit", "commit", "state")
        },
    }
