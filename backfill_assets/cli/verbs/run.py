"""`backfill run`: fill the missing cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.exits import DONE, FAILED, WAITS
from backfill_assets.cli.late import build_late_data, healed_again, late_json, say_late
from backfill_assets.cli.looking import left_json, say_looked
from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, AsOf, Env, Select  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import Heading, err, print_json, print_table, say
from backfill_assets.cli.progress import shown
from backfill_assets.cli.project import clock_at
from backfill_assets.cli.run_commands import in_environment, plan_for
from backfill_assets.cli.told_cells import say_cells
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.fill.late_cells import in_place_of
from backfill_assets.engine.fill.observing import observe
from backfill_assets.engine.fill.outstanding import outstanding
from backfill_assets.engine.plans.told_cells import cells_json
from backfill_assets.engine.project.events import (
    Committed,
    Failed,
    LeftStale,
    Waiting,
    seconds_by_step,
)
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.planning.plan.selecting import selected
from backfill_assets.planning.plan.windows import cut_windows
from backfill_assets.planning.plan.written_options import chosen
from backfill_assets.render.plan_words import naming_of
from backfill_assets.snapshots.timing import RUN, Timing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.fill.observing import SourceLook
    from backfill_assets.engine.fill.outstanding import Outstanding
    from backfill_assets.engine.project.events import Event
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.render.plan_words import Naming


def run(
    select: Select = None,
    start: Annotated[
        str | None, typer.Option(metavar="WHEN", help="First date, or instant with offset.")
    ] = None,
    end: Annotated[
        str | None,
        typer.Option(metavar="WHEN", help="Last date (included), or instant (excluded)."),
    ] = None,
    env: Env = "prod",
    now: AsOf = None,
    as_json: AsJson = False,
) -> None:
    """Fill the missing cells, upstream first, in audited batches.

    Ready cells are not built again, so the same command resumes a run that was stopped. Dates are local
    to each model; a range is rounded outward to whole cells and clipped to the model's life.
    Late rows of the sources are included: cells inside of late windows are built again and published,
    in all models at once. A run of some models, or of a range, does not build them.

    Exit code: 0 when every cell asked for is ready and up to date, 1 when a batch failed or cells are still missing, 3 when
    stale cells wait for another run or a plan, or a source could not be looked at; the last line says which.

    Example: backfill run

    Example: backfill run --select web.events --start 2025-05-01 --end 2025-05-07
    """
    with operating(clock=clock_at(now)) as at:
        opened = at.filling(env)
        names = selected(opened.graph, chosen(select))
        targets = _targets(opened, names, start, end)
        _announce(opened, _todo(opened, targets))
        everything = not chosen(select) and start is None and end is None
        late = (
            build_late_data(opened) if everything else None
        )  # it looks, too, and gaps read what it builds
        looks = late.looks if late else _looked(opened, names)
        todo, naming = _todo(opened, targets), naming_of(opened.graph)
        events_by_model = _filled(opened, targets, todo) if todo else {}
        late = healed_again(opened, late) if late else None
        lacking = _counts(naming, _todo(opened, targets).missing)
        within = CellsByModel(targets)
        remaining = outstanding(opened, names, late.looks if late else looks, within)
    rows = {
        name: _summary(events, lacking.get(name, 0)) for name, events in events_by_model.items()
    }
    if as_json:
        missing = sum(lacking.values())
        fields = {"environment": env, "run_id": at.run_id, "missing": missing, "models": rows}
        print_json(
            {
                **fields,
                **cells_json(naming, _built(events_by_model)),
                "late": late_json(naming, late),
                "left": left_json(remaining),
            }
        )
    else:
        say_late(naming, late)
        say_cells(naming, _built(events_by_model))
        _report(env, len(targets), rows, remaining, refreshed=bool(late and late.cells))
    failed = any(row["failed"] for row in rows.values()) or bool(late and late.failed)
    if code := FAILED if failed or lacking else WAITS if remaining.is_open else DONE:
        raise typer.Exit(code)


@dataclass(frozen=True, slots=True)
class _Todo:
    """Cells that a run builds: those that are missing, and stale ones that it builds again in their own tables."""

    missing: CellsByModel
    again: CellsByModel

    def __bool__(self) -> bool:
        return bool(self.missing or self.again)


def _todo(opened: RunContext, targets: Mapping[str, IntervalSet]) -> _Todo:
    view, now = opened.view(), opened.clock()
    works = {name: opened.work(name, view, now) for name in targets}
    gaps = CellsByModel({name: work.gaps for name, work in works.items()})
    return _Todo(gaps & targets, in_place_of(opened, works) & targets)


def _counts(naming: Naming, cells: CellsByModel) -> dict[str, int]:
    return {name: naming.count(name, own) for name, own in cells.items()}


def _filled(
    opened: RunContext, targets: Mapping[str, IntervalSet], todo: _Todo
) -> dict[str, tuple[Event, ...]]:
    """Fill the missing cells, show the progress, and record the time."""
    since = opened.at_work.seconds()
    counts = _counts(naming_of(opened.graph), todo.missing | todo.again)
    with shown(opened.graph, counts) as listener:
        events = fill_cells(opened, targets, listener)
    opened.store.plans.keep_timing(Timing(RUN, opened.at_work.seconds(since)))
    return events


def _looked(opened: RunContext, names: tuple[str, ...]) -> tuple[SourceLook, ...]:
    looks = observe(opened, names)
    say_looked(looks)
    return looks


def _targets(
    opened: RunContext, names: tuple[str, ...], start: str | None, end: str | None
) -> dict[str, IntervalSet]:
    """Read the range in each model's own zone and grid, and say where it was rounded or clipped.

    A model without a required cell is included too.

    Raises:
        OutsideLifeError: the range lies outside the life of every model asked for.
        RequestError: it starts in the future.
    """
    request = PlanRequest(environment=opened.environment.name, start=start, end=end)
    models = {name: opened.graph.models[name] for name in names}
    windows = cut_windows(request, models, models.keys(), opened.view(), opened.clock())
    for name, window in windows.items():
        for note in window.notes:
            say(f"{name}: {note}", to=err, indent=2)
    return {name: window.cells for name, window in windows.items() if not window.missed}


def _announce(opened: RunContext, todo: _Todo) -> None:
    """Say what the run is before its first step; nothing where it has nothing to do as far as is recorded."""
    if not todo:
        return
    naming = naming_of(opened.graph)
    parts = (
        (_counts(naming, todo.missing), "missing"),
        (_counts(naming, todo.again), "to be built again"),
    )
    words = ", ".join(
        f"{counted(sum(counts.values()), 'cell')} of {counted(len(counts), 'model')} {what}"
        for counts, what in parts
        if counts
    )
    say(
        f"run {opened.run_id}: {words}; stop it at any time, the same command builds the rest",
        to=err,
    )
    env = opened.environment.name
    for name in (name for name in opened.changed if name in todo.missing | todo.again):
        say(
            f"{name}: its declaration has changed; filled with the snapshot that {env} runs "
            f"until a plan is promoted: `{plan_for(env)}`",
            to=err,
            indent=2,
        )


_HEADINGS = (
    Heading("model"),
    Heading("cells", number=True),
    Heading("batches", number=True, spare=2),
    Heading("rows", number=True, spare=1),
    Heading("failed", number=True),
    Heading("missing", number=True),
)


def _report(
    env: str,
    models: int,
    rows: Mapping[str, Mapping[str, Any]],
    remaining: Outstanding,
    *,
    refreshed: bool,
) -> None:
    if remaining.warning:
        say(remaining.warning, indent=2)
    waits = remaining.is_open
    if not rows:
        what = ["late data is in"] if refreshed else [] if waits else ["nothing to do"]
        what.append(f"every required cell of {counted(models, 'model')} is ready")
        say(f"{env}: {', '.join(what)}{f'; {remaining.words}' if waits else ''}.")
        return
    moved = {name: row for name, row in rows.items() if any(row[key] for key in _COUNTS)}
    print_table(
        _HEADINGS, [(name, *(f"{row[key]:,}" for key in _COUNTS)) for name, row in moved.items()]
    )
    filled, failed, missing = (
        sum(row[key] for row in rows.values()) for key in ("cells", "failed", "missing")
    )
    if failed:
        say("Next: backfill batches --failed")
    elif missing:
        where = in_environment(env)
        say(f"Next: backfill status{where}, then backfill why MODEL CELL{where} for a waiting cell")
    say(
        f"{env}: {counted(filled, 'cell')} filled, {counted(failed, 'batch', 'batches')} failed, "
        + (f"{remaining.words}." if waits else f"{counted(missing, 'cell')} missing.")
    )


_COUNTS = ("cells", "batches", "rows", "failed", "missing")


def _built(events_by_model: Mapping[str, tuple[Event, ...]]) -> dict[str, CellsByModel]:
    """Every cell that was built, by model, including cells that rows moved out of."""
    built = {
        name: IntervalSet.of(
            cell for event in events if isinstance(event, Committed) for cell in event.contents
        )
        for name, events in events_by_model.items()
    }
    return {"built": CellsByModel(built)}


def _summary(events: tuple[Event, ...], missing: int) -> dict[str, Any]:
    done = [event for event in events if isinstance(event, Committed)]
    failed = [event for event in events if isinstance(event, Failed)]
    return {
        "cells": sum(batch.filled for batch in done),
        "batches": len(done),
        "rows": sum(batch.rows for batch in done),
        "failed": len(failed),
        "waiting": sum(isinstance(event, Waiting) for event in events),
        "needs_plan": sum(isinstance(event, LeftStale) and not event.until for event in events),
        "missing": missing,
        "errors": [failure.error for failure in failed],
        "seconds": seconds_by_step(events),
    }
