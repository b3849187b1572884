"""What evidence rests on and the state keeps nowhere else, or not for good: kept when a plan ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.codec import dumps, loads
from backfill_assets.models.consumer import CONSUMED, Consumer
from backfill_assets.planning.review.touched import ROWS
from backfill_assets.snapshots.snapshot import STORED
from backfill_assets.snapshots.timing import Timing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.engine.project.project import InProject
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content
    from backfill_assets.models.graph import Graph
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.snapshots.stored_plan import StoredPlan
    from backfill_assets.state.store import Store

Differing = dict[str, dict[str, dict[str, IntervalSet]]]
"""By the number of a publication, by model, by column (and `ROWS`): the cells where it differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What held when a plan ended.

    Attributes:
        cadences: by model and source.
        schemas: names and types of their columns.
        consumers: those that were declared to read a model of the plan.
        promise_days: how many days after its promotion a plan can be taken back.
        timings: what its operations took.
        differing: what its publications changed, column by column.
    """

    cadences: Mapping[str, Cadence] = field(default_factory=dict[str, Cadence])
    schemas: Mapping[str, tuple[tuple[str, str], ...]] = field(
        default_factory=dict[str, "tuple[tuple[str, str], ...]"]
    )
    consumers: tuple[Consumer, ...] = ()
    promise_days: int = 0
    timings: tuple[Timing, ...] = ()
    differing: Mapping[str, Mapping[str, Mapping[str, IntervalSet]]] = field(
        default_factory=Differing
    )


def note(run: InProject, plan: StoredPlan, earlier: Noted | None) -> Noted:
    """Note what holds now for a plan.

    Args:
        run: the project.
        plan: the plan.
        earlier: what was noted at an earlier end of the plan: what it knows of publications stays.
    """
    graph, moves = run.project.loaded.graph, run.store.history.moves_of(plan.plan_id)
    names = {*plan.cells, *(move.model for move in moves)}
    read = {up.name for name in names if name in graph.models for up in graph.models[name].reads}
    known = dict(earlier.differing) if earlier else {}
    new = [move for move in moves if str(move.number) not in known]
    return Noted(
        cadences=_cadences(graph, names | read),
        schemas=_schemas(graph, names | read),
        consumers=tuple(
            consumer
            for _, consumer in sorted(graph.consumers.items())
            if names & {reading.model for reading in consumer.reads}
        ),
        promise_days=run.project.terms.promise_days,
        timings=tuple(reversed(run.store.plans.timings(plan.plan_id))),
        differing={**known, **_differing(run.store, new)},
    )


def noted_text(noted: Noted) -> str:
    """Write it as the state keeps it."""
    return dumps(noted)


def read_noted(text: str) -> Noted:
    """Read what the state keeps."""
    return loads(text, (*STORED, *CONSUMED, Cadence, IntervalSet, Timing, Noted))


def _cadences(graph: Graph, names: Iterable[str]) -> dict[str, Cadence]:
    declared = {**graph.sources, **graph.models}
    return {name: declared[name].cadence for name in sorted(names) if name in declared}


def _schemas(graph: Graph, names: Iterable[str]) -> dict[str, tuple[tuple[str, str], ...]]:
    declared = {**graph.sources, **graph.models}
    return {
        name: tuple((column.name, column.dtype) for column in declared[name].schema)
        for name in sorted(names)
        if name in declared
    }


def _differing(store: Store, moves: Iterable[PointerMove]) -> Differing:
    found: Differing = {}
    for move in moves:
        found.setdefault(str(move.number), {})[move.model] = _columns(store, move)
    return found


def _columns(store: Store, move: PointerMove) -> dict[str, IntervalSet]:
    """Find in which of the changed cells which column differs; none of a model that came or went."""
    if move.old is None or move.new is None or not move.changed:
        return {}
    before, after = (store.views.contents_at(at, move.changed) for at in (move.old, move.new))
    cells: dict[str, list[Interval]] = {}
    for cell in before.keys() | after.keys():
        for name in _differ(before.get(cell), after.get(cell)):
            cells.setdefault(name, []).append(cell)
    return {name: IntervalSet.of(cells[name]) for name in sorted(cells)}


def _differ(before: Content | None, after: Content | None) -> list[str]:
    """Name the columns that differ; where other rows are, a column's checksum says nothing."""
    if before is None or after is None or (before.rows, before.key) != (after.rows, after.key):
        return [ROWS]
    names = before.columns.keys() | after.columns.keys()
    return [name for name in names if before.columns.get(name) != after.columns.get(name)]
