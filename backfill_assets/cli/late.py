"""Write late data as text: the cells that were built again automatically, and the cells that wait."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from backfill_assets.cli.output import say
from backfill_assets.cli.progress import shown
from backfill_assets.engine.automatic.late_plan import Refreshed, joined, refresh_late
from backfill_assets.engine.fill.late_cells import late_work_of
from backfill_assets.intervals.text import counted
from backfill_assets.planning.rule.late_work import beyond_words

if TYPE_CHECKING:
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.render.plan_words import Naming


def build_late_data(run: RunContext) -> Refreshed:
    """Build the cells of late data again, and show the progress."""
    with shown(run.graph, {}) as listener:  # how much follows is found out on the way
        return refresh_late(replace(run, project=replace(run.project, listener=listener)))


def healed_again(run: RunContext, before: Refreshed) -> Refreshed:
    """Build late data that arrived in the meantime; the next run builds failed cells."""
    work = late_work_of(run)
    if before.failed or not (work.automatic or work.in_place):
        return replace(before, left=work)
    after = build_late_data(run)
    return replace(
        after,
        plan_id=after.plan_id or before.plan_id,
        cells=before.cells | after.cells,
        built_by=joined(before.built_by, after.built_by),
        promoted=before.promoted and after.promoted,
        spared=dict(Counter(before.spared) + Counter(after.spared)),
        notes=(*before.notes, *after.notes),
        looks=after.looks or before.looks,
    )


def late_lines(naming: Naming, done: Refreshed) -> list[str]:
    """Write the result for late data."""
    lines = [
        f"late     {name}: {ranges} built again {f'by plan {plan}' if plan else 'in its own table'}"
        for plan, built in done.built_by.items()
        for name, ranges in naming.by_model(built).items()
    ]
    if spared := sum(done.spared.values()):
        lines.append(f"spared   {counted(spared, 'cell')}: what they read did not change")
    lines += waiting_lines(naming, done)
    lines += [
        f"late     {name}: {ranges}; another run or plan, or a batch that failed, keeps it for now"
        for name, ranges in naming.by_model(done.held).items()
    ]
    lines += [
        f"late     {name}: {ranges} waits for rows of {source}, which has lost those that it was built from"
        for source, cells in done.left.awaits.items()
        for name, ranges in naming.by_model(cells).items()
    ]
    lines += [f"FAILED   {failure.model}: {failure.error}" for failure in done.failed]
    return [*lines, *done.notes]


def waiting_lines(naming: Naming, done: Refreshed) -> list[str]:
    """Say what is late and reaches further back than late windows do."""
    return [
        f"late     {name}: {naming.count(name, done.left.waiting[name]):,} need a plan"
        f"{beyond_words(done.left.beyond(name))}, {ranges}; {done.left.because.get(name, '')}"
        for name, ranges in naming.by_model(done.left.waiting).items()
    ]


def say_late(naming: Naming, done: Refreshed | None) -> None:
    """Print the result for late data."""
    for line in late_lines(naming, done) if done else ():
        say(line, indent=2)
    if done and done.left.waiting:
        next_ = f"backfill show {done.needed}, the plan" if done.needed else "backfill plan,"
        say(f"Next: {next_} for what is late and needs one")


def late_json(naming: Naming, done: Refreshed | None) -> dict[str, Any] | None:
    """Give it as JSON values; None where no late data was built."""
    return done and {
        "plan_id": done.plan_id,
        "promoted": done.promoted,
        "built": naming.listed(done.built),
        "spared": dict(done.spared),
        "needs_plan": naming.by_model(done.left.waiting),
        "beyond": {name: [*done.left.beyond(name)] for name in done.left.waiting},
        "needed_plan": done.needed,
        "held": naming.by_model(done.held),
        "awaits": {source: naming.by_model(cells) for source, cells in done.left.awaits.items()},
        "errors": [failure.error for failure in done.failed],
        "notes": list(done.notes),
    }
