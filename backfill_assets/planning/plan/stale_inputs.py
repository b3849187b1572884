"""Find what has moved under a plan since it was made, among the cells and columns that it reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.planning.plan.plan import Build, Why

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import ModelPlan, Plan, PlannedRead
    from backfill_assets.snapshots.state_view import ReadyRun, StateView


@dataclass(frozen=True, slots=True)
class StaleInput:
    """A pointer or cells that are no longer as a plan saw them.

    Attributes:
        model: the planned model.
        of: what moved: the model itself, or an upstream that its cells read.
        what: in words.
    """

    model: str
    of: str
    what: str


def moved_inputs(plan: Plan, graph: Graph, view: StateView) -> tuple[StaleInput, ...]:
    """Give the pointers and cells that have moved since the plan was made.

    Added cells count only where the plan records them as empty.

    Args:
        plan: the plan.
        graph: every model and source.
        view: the environment's state now.
    """
    return tuple(
        stale
        for model in plan.models
        for moves in (
            _pointer(model, view),
            _rewritten(model, plan, graph, view),
            _blanked(model, plan, graph, view),
        )
        for stale in moves
    ) + tuple(stale for model in plan.models for stale in _reads(model, plan, graph, view))


def _pointer(model: ModelPlan, view: StateView) -> Iterator[StaleInput]:
    """Check whether the environment runs another snapshot or table than the plan saw."""
    state = view.models.get(model.model)
    now = (state.pointer.version, state.pointer.fingerprint) if state else ("", "")
    saw = (model.old_version, model.old_fingerprint)
    if now == saw or (model.build is Build.GAP_FILL and now[0] == saw[0]):
        return
    what = f"the environment ran {_named(saw)} when the plan was made, and runs {_named(now)} now"
    yield StaleInput(model.model, model.model, what)


def _named(pointer: tuple[str, str]) -> str:
    version, fingerprint = pointer
    return f"{version} ({fingerprint[:8]})" if version else "nothing"


def _rewritten(model: ModelPlan, plan: Plan, graph: Graph, view: StateView) -> Iterator[StaleInput]:
    """Find planned cells that were built again in a table whose cells the plan rewrites."""
    state = view.models.get(model.model)
    if state is None or model.build is not Build.IN_PLACE:
        return
    was_ready = IntervalSet.union_all(part.cells for part in model.work if part.why is not Why.GAP)
    rebuilt = IntervalSet.of(run.interval for run in state.runs if run.built_at > plan.seen)
    cells = rebuilt & was_ready
    if cells:
        named = _cells(graph, model.model, cells)
        yield StaleInput(model.model, model.model, f"{named} built again since")


def _blanked(model: ModelPlan, plan: Plan, graph: Graph, view: StateView) -> Iterator[StaleInput]:
    """Find cells that the plan records as empty, and that the environment publishes by now."""
    if not plan.request.empty or not model.built_apart:
        return
    if cells := model.certain & view.ready(model.model):
        named = _cells(graph, model.model, cells)
        what = f"{named} published since, which the plan records as empty"
        yield StaleInput(model.model, model.model, what)


def _reads(model: ModelPlan, plan: Plan, graph: Graph, view: StateView) -> Iterator[StaleInput]:
    for read in model.reads:
        if read.upstream == model.model and model.build is Build.NEW_VERSION:
            continue  # it reads its own earlier cells in the new table, not the published ones
        newer = _changed(read, plan.seen, view)
        if newer:
            cells = IntervalSet.of(run.interval for run in newer) & read.cells
            what = f"{_cells(graph, read.upstream, cells)} changed since{_parts(read, plan.seen, newer)}"
            yield StaleInput(model.model, read.upstream, what)


def _changed(read: PlannedRead, seen: int, view: StateView) -> list[ReadyRun]:
    """Give the read cells whose read columns, or whose rows, have changed since."""
    state = view.models.get(read.upstream)
    columns = None if read.columns is None else frozenset(read.columns)
    return [
        run
        for run in (state.runs if state else ())
        if run.changed_at.latest(columns) > seen and IntervalSet.of([run.interval]) & read.cells
    ]


def _parts(read: PlannedRead, seen: int, newer: Iterable[ReadyRun]) -> str:
    """Say which of the read columns have changed in some cells, and whether rows came or went; then every column has."""
    stamps = [run.changed_at for run in newer]
    columns = {
        name
        for changed_at in stamps
        if changed_at.row_set <= seen
        for name, at in changed_at.columns.items()
        if at > seen and (read.columns is None or name in read.columns)
    }
    rows = any(changed_at.row_set > seen for changed_at in stamps)
    named = f" in {', '.join(sorted(columns))}" if columns else ""
    return f"{named}{', and' if named else ''} with rows that came or went" if rows else named


def _cells(graph: Graph, name: str, cells: IntervalSet) -> str:
    is_declared = name in graph.models or name in graph.sources
    return ranges_text(graph.node(name).cadence, cells) if is_declared else str(cells)
