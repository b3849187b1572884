"""Write late data as text: the cells that were built again automatically, and the cells that wait."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backfill_assets.cli.output import say
from backfill_assets.cli.progress import shown
from backfill_assets.engine.automatic.late_plan import Refreshed, refresh_late
from backfill_assets.engine.fill.late_cells import late_work_of
from backfill_assets.intervals.text import counted, ranges_text
from backfill_assets.render.plan_words import naming_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.cells_by_model import CellsByModel
    from backfill_assets.models.graph import Graph


def build_late_data(run: RunContext) -> Refreshed:
    """Build the cells of late data again, and show the progress."""
    with shown(run.graph, {}) as listener:  # how much follows is found out on the way
        return refresh_late(replace(run, project=replace(run.project, listener=listener)))


def healed_again(run: RunContext, before: Refreshed) -> Refreshed:
    """Build late data that arrived in the meantime; the next run builds failed cells."""
    work = late_work_of(run)
    if before.failed or not (work.automatic or work.in_place):
        return replace(before, waiting=work.waiting, awaits=work.awaits, because=work.because)
    after = build_late_data(run)
    return replace(
        after,
        plan_id=after.plan_id or before.plan_id,
        cells=before.cells | after.cells,
        built=before.built | after.built,
        promoted=before.promoted and after.promoted,
        spared=dict(Counter(before.spared) + Counter(after.spared)),
        notes=(*before.notes, *after.notes),
        looks=after.looks or before.looks,
    )


def late_lines(graph: Graph, done: Refreshed) -> list[str]:
    """Write the result for late data."""
    lines = [
        f"late     {name}: {ranges} built again"
        + (f" by plan {done.plan_id}" if done.plan_id else "")
        for name, ranges in _ranges(graph, done.built).items()
    ]
    if spared := sum(done.spared.values()):
        lines.append(f"spared   {counted(spared, 'cell')}: what they read did not change")
    lines += waiting_lines(graph, done.waiting, done.because)
    lines += [
        f"late     {name}: {ranges}; another run or plan, or a batch that failed, keeps it for now"
        for name, ranges in _ranges(graph, done.held).items()
    ]
    lines += [
        f"late     {name}: {ranges} waits for rows of {source}, which has lost those that it was built from"
        for source, cells in done.awaits.items()
        for name, ranges in _ranges(graph, cells).items()
    ]
    lines += [f"FAILED   {failure.model}: {failure.error}" for failure in done.failed]
    return [*lines, *done.notes]


def waiting_lines(graph: Graph, waiting: CellsByModel, because: Mapping[str, str]) -> list[str]:
    """Say what is late and reaches further back than late windows do."""
    return [
        f"late     {name}: {graph.model(name).cadence.count(waiting[name]):,} "
        f"need a plan, {ranges}; {because.get(name, '')}"
        for name, ranges in _ranges(graph, waiting).items()
    ]


def say_late(graph: Graph, done: Refreshed | None) -> None:
    """Print the result for late data."""
    for line in late_lines(graph, done) if done else ():
        say(line, indent=2)
    if done and done.waiting:
        next_ = f"backfill show {done.needed}, the plan" if done.needed else "backfill plan,"
        say(f"Next: {next_} for what is late and needs one")


def late_json(graph: Graph, done: Refreshed | None) -> dict[str, Any] | None:
    """Give it as JSON values; None where no late data was built."""
    return done and {
        "plan_id": done.plan_id,
        "promoted": done.promoted,
        "built": naming_of(graph).listed(done.built),
        "spared": dict(done.spared),
        "needs_plan": _ranges(graph, done.waiting),
        "needed_plan": done.needed,
        "held": _ranges(graph, done.held),
        "awaits": {source: _ranges(graph, cells) for source, cells in done.awaits.items()},
        "errors": [failure.error for failure in done.failed],
        "notes": list(done.notes),
    }


def _ranges(graph: Graph, cells: CellsByModel) -> dict[str, str]:
    """Name cells of models as ranges, none left out."""
    return {
        name: ranges_text(graph.model(name).cadence, own, limit=len(own))
        for name, own in cells.items()
    }
