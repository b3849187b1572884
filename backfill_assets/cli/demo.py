"""`make demo`: land the sample data, fill the whole history of every model, say what to do next."""

from __future__ import annotations

import sys
import time
import uuid
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from backfill_assets.cli.output import bar, err, out, print_table
from backfill_assets.cli.progress import shown
from backfill_assets.cli.project import LazySpark, load_graph, now
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.execution.graph_run import run_graph
from backfill_assets.execution.opening import open_run
from backfill_assets.execution.run_context import RunContext
from backfill_assets.intervals.required import required
from backfill_assets.planning.needs_work import Work, needs_work
from backfill_assets.pipelines.landing import EVENTS, land_all
from backfill_assets.settings import Settings
from backfill_assets.state.store import Store


def demo(
    events: Annotated[int, typer.Option(help="how many ad events to land")] = EVENTS,
) -> None:
    """Land the sample data and fill every model's history; a second time finds nothing to do."""
    began = time.monotonic()
    settings = Settings()
    Path(settings.data_root).mkdir(parents=True, exist_ok=True)
    spark = LazySpark(settings)
    store = Store.open(settings.state, clock=now, lease_seconds=settings.lease_seconds)
    try:
        run = open_run(
            store,
            load_graph(settings),
            environment="prod",
            spark=spark,
            data_root=settings.data_root,
            clock=now,
            run_id=f"demo-{uuid.uuid4().hex[:12]}",
        )
        found = _work(run)
        if not any(work.gaps for work in found.values()):
            _summary(run, found)
            out.print(f"Nothing to do: all {len(found)} models are ready. ({_since(began)})")
            _next()
            return
        _land(spark, settings, events)
        landed = time.monotonic()
        _fill(run, found, settings)
        found = _work(run)
        _summary(run, found)
        out.print(f"Landed in {landed - began:.0f} s, filled in {_since(landed)}.")
        _next()
        if any(work.gaps for work in found.values()):
            raise typer.Exit(1)
    finally:
        spark.stop()
        store.close()


def _work(run: RunContext) -> dict[str, Work]:
    view, at = run.view(), run.clock()
    return {
        name: needs_work(run.graph, view, run.graph.model(name), now=at, reads=run.reads[name])
        for name in run.graph.order
    }


def _land(spark: LazySpark, settings: Settings, events: int) -> None:
    columns = (TextColumn("landing {task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        task = progress.add_task("sources", total=None)

        def landed(name: str, done: int, total: int) -> None:
            progress.update(task, description=name, completed=done, total=total)
            if not err.is_terminal:
                err.print(f"landed {name} ({done} of {total})")

        land_all(spark(), settings.data_root, events=events, progress=landed)


def _fill(run: RunContext, found: dict[str, Work], settings: Settings) -> None:
    cadences = {name: run.graph.model(name).cadence for name in found}
    todo = {name: cadences[name].count(work.gaps) for name, work in found.items()}
    targets = {
        name: required(cadence, start=None, end=None, now=run.clock())
        for name, cadence in cadences.items()
    }
    with shown(run.graph, todo) as listener:
        run_graph(run, targets, listener, batches_at_once=settings.max_batches)


def _summary(run: RunContext, found: dict[str, Work]) -> None:
    rows = [(name, *_numbers(run, name, work)) for name, work in found.items()]
    print_table(("model", "", "cells#", "required#", "rows#", "batches#", "s#"), rows)


def _numbers(run: RunContext, name: str, work: Work) -> tuple[str, ...]:
    count = run.graph.model(name).cadence.count
    done = [one for one in run.store.batches(model=name) if one.status == "committed"]
    seconds = sum(
        (one.finished_at - one.started_at).total_seconds() for one in done if one.finished_at
    )
    return (
        bar(count(work.ready), count(work.required)),
        f"{count(work.ready):,}",
        f"{count(work.required):,}",
        f"{sum(one.rows or 0 for one in done):,}",
        f"{len(done)}",
        f"{seconds:.1f}",
    )


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


def _next() -> None:
    out.print("Next: make ui, then open http://localhost:3000 | backfill status | backfill why")


def main() -> None:
    """Run the demo; a mistake of the user's ends in one line."""
    try:
        typer.run(demo)
    except BackfillAssetsError as error:
        err.print(f"error: {error}", markup=False, soft_wrap=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
