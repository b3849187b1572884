"""Launches by hand: a person chooses models and partitions in Dagster, published ones among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.automatic.by_hand import published_by_others, rebuild_by_hand
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.project.opening import open_run
from backfill_assets.engine.project.run_context import PublishedCells
from backfill_assets.intervals import Interval, IntervalSet
from backfill_assets.intervals.required import required
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.histories import verbs
from backfill_assets_tests.histories.checks import Allowed, differ_only, keeps
from backfill_assets_tests.histories.oracle import midnight

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets_tests.histories.history import History

_MODELS = 3


def launch_by_hand(history: History) -> None:
    """Launch some models over some days: missing cells are filled, no published one changes."""
    targets = _targets(history)
    launch = f"launch-{len(history.said)}"
    names = ", ".join(f"{name} {history.text(name, cells)}" for name, cells in targets.items())
    history.say(f"{launch} by hand: {names}")
    before = history.contents()
    committed = {name: history.in_flight(name) for name in targets}
    for name in targets:
        _step(history, launch, name, targets)
    for plan in history.kept_plans(*verbs.UNFINISHED):
        if plan.request.launch == launch:
            history.say(f"  plan {plan.plan_id} waits for a person")
            verbs.note_kept(history, PROD, plan)
    after = history.contents()
    filled: Allowed = {
        name: committed[name] | (history.starts(name, cells) - before.of(name).keys())
        for name, cells in targets.items()
    }
    differ_only(before.cells, after.cells, filled, launch)
    keeps(before, after, launch)


def _targets(history: History) -> dict[str, IntervalSet]:
    """Choose models, upstream first, and the cells that some days touch."""
    random, graph = history.random, history.graph
    first, last = sorted(random.choices(history.past_days, k=2))
    days = IntervalSet.of([Interval(midnight(first), midnight(last))]) if first < last else None
    chosen = {*random.choices(list(history.project), k=random.randint(1, _MODELS))}
    needed = {
        name: required(graph.model(name).cadence, now=history.world.clock())
        for name in graph.order
        if name in chosen
    }
    return {
        name: cells if days is None else graph.model(name).cadence.snap_out(days) & cells
        for name, cells in needed.items()
    }


def _step(history: History, launch: str, name: str, targets: Mapping[str, IntervalSet]) -> None:
    """Do what the step of an asset does in a run that a person launched."""
    run = open_run(
        history.world.project(history.graph),
        PROD,
        root_id=launch,
        published=PublishedCells.REBUILT,
    )
    again = _published(run, targets)
    if missing := targets[name] - again[name]:
        fill_cells(run, {name: missing}, history.world.heard.append)
    if again[name]:
        rebuild_by_hand(run, name, _published(run, targets), "launched by hand")


def _published(run: RunContext, targets: Mapping[str, IntervalSet]) -> dict[str, IntervalSet]:
    return {name: cells & published_by_others(run, name) for name, cells in targets.items()}
