"""`make demo`: land the sample data, fill the whole history of every model, name the next step."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from backfill_assets.cli.app import call
from backfill_assets.cli.operating import operating
from backfill_assets.cli.output import Heading, bar, err, print_table, say
from backfill_assets.cli.progress import shown
from backfill_assets.cli.verbs.report import tell_dagster
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.intervals.required import required
from backfill_assets.intervals.text import counted
from backfill_assets.pipelines.landing import EVENTS, land_all
from backfill_assets.snapshots.environment import PROD

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.settings import Settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def demo(
    events: Annotated[int, typer.Option(min=1, help="How many ad events to land.")] = EVENTS,
) -> None:
    """Land the sample data and fill every model's history; a second time finds nothing to do."""
    began = time.monotonic()
    with operating() as at:
        run = at.filling(PROD)
        needed = _work(run)
        if not any(work.gaps for work in needed.values()):
            _summary(run, needed)
            say(f"Nothing to do: all {counted(len(needed), 'model')} are ready. ({_since(began)})")
            _next()
            return
        _land(at.project.spark, at.settings, events)
        landed = time.monotonic()
        _fill(run, needed)
        needed = _work(run)
        _summary(run, needed)
        say(f"Landed in {landed - began:.0f} s, filled in {_since(landed)}.")
        if "DAGSTER_HOME" in os.environ:
            say(f"Told Dagster's UI of {counted(tell_dagster(run), 'cell')}.")
        _next()
        if any(work.gaps for work in needed.values()):
            raise typer.Exit(1)


def _work(run: RunContext) -> dict[str, Work]:
    view, at = run.view(), run.clock()
    return {name: run.work(name, view, at) for name in run.graph.order}


def _land(spark: Callable[[], Any], settings: Settings, events: int) -> None:
    session = spark()  # that it starts is shown by itself
    columns = (TextColumn("landing {task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=err, disable=not err.is_terminal) as progress:
        task = progress.add_task("sources", total=None)

        def landed(name: str, done: int, total: int) -> None:
            progress.update(task, description=name, completed=done, total=total)
            if not err.is_terminal:
                say(f"landed {name} ({done} of {total})", to=err)

        land_all(session, settings.data_root, events=events, progress=landed)


def _fill(run: RunContext, needed: dict[str, Work]) -> None:
    cadences = {name: run.graph.model(name).cadence for name in needed}
    todo = {name: cadences[name].count(work.gaps) for name, work in needed.items()}
    targets = {name: required(cadence, now=run.clock()) for name, cadence in cadences.items()}
    with shown(run.graph, todo) as listener:
        fill_cells(run, targets, listener)


def _summary(run: RunContext, needed: dict[str, Work]) -> None:
    rows = [(name, *_numbers(run, name, work)) for name, work in needed.items()]
    print_table(_HEADINGS, rows)


_HEADINGS = (
    Heading("model"),
    Heading("", spare=1),
    Heading("cells", number=True),
    Heading("required", number=True, spare=3),
    Heading("rows", number=True),
    Heading("batches", number=True, spare=2),
    Heading("seconds", number=True),
)


def _numbers(run: RunContext, name: str, work: Work) -> tuple[str, ...]:
    count = run.graph.model(name).cadence.count
    done = [row for row in run.store.batches.latest(model=name) if row.is_committed]
    seconds = sum(
        (row.finished_at - row.started_at).total_seconds() for row in done if row.finished_at
    )
    return (
        bar(count(work.ready), count(work.required)),
        f"{count(work.ready):,}",
        f"{count(work.required):,}",
        f"{sum(row.rows or 0 for row in done):,}",
        f"{len(done)}",
        f"{seconds:.1f}",
    )


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.0f} s"


def _next() -> None:
    say("Next: make ui, then open http://localhost:3000")
    say(
        "      `.venv/bin/backfill status`, `.venv/bin/backfill why commerce.fact_orders 2018-10-03`"
    )


def main() -> None:
    """Run the demo for the process."""
    sys.exit(call(app, sys.argv[1:], "demo"))


if __name__ == "__main__":
    main()
