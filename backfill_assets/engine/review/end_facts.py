"""What evidence rests on and the state keeps nowhere else, or not for good: kept when a plan ends."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.engine.project.naming import planned_models
from backfill_assets.engine.review.acting import verdicts, verified_statements
from backfill_assets.engine.review.answers import answers
from backfill_assets.engine.review.results import invalid_results
from backfill_assets.engine.review.reviewed import built_plan, reviewed
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.codec import ADDED_LATER, dumps, loads
from backfill_assets.models.consumer import CONSUMED, Consumer
from backfill_assets.planning.plan.plan_json import PlanFormatError, read_plan
from backfill_assets.planning.review.approval import Act
from backfill_assets.planning.review.touched import ROWS
from backfill_assets.snapshots.result import Invalidated, Result
from backfill_assets.snapshots.snapshot import STORED
from backfill_assets.snapshots.stored_plan import PlanStatus, promotion_of
from backfill_assets.snapshots.timing import Timing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets.engine.project.project import InProject, Project
    from backfill_assets.models.content import ChangedAt
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.snapshots.stored_plan import StoredPlan
    from backfill_assets.state.store import Store

    _Stamped = list[tuple[tuple[int, int], ChangedAt]]
    """Cells by their bounds, in epoch seconds, with their stamps."""

_log = logging.getLogger(__name__)

Differing = dict[str, dict[str, dict[str, IntervalSet]]]
"""By the number of a publication, by model, by column (and `ROWS`): the cells where it differs."""
Gone = dict[str, dict[str, IntervalSet]]
"""By the number of a publication and by model: the cells that it took away from readers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """What held when a plan ended. The text that the state keeps has this name, so it stays.

    Attributes:
        cadences: by model and source.
        schemas: names and types of their columns.
        consumers: those that were declared to read a model of the plan.
        promise_days: how many days after its promotion a plan can be taken back.
        timings: what its operations took.
        differing: what its publications changed, column by column.
        results: registered results that rest on cells which it changes.
        built: of a plan that is built and not published, by model and column (and `ROWS`): the published
            cells where it differs; None of every other plan.
        gone: the cells that its publications took away from readers.
        approvals: why each approval, and each signed answer, does not count, by the SHA-256 of its text, empty
            where it does: as it was promoted, or as it is built; one that is not named was not judged.
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
    results: tuple[Invalidated, ...] = field(default=(), metadata=ADDED_LATER)
    built: Mapping[str, Mapping[str, IntervalSet]] | None = field(
        default=None, metadata=ADDED_LATER
    )
    approvals: Mapping[str, str] = field(default_factory=dict[str, str], metadata=ADDED_LATER)
    gone: Mapping[str, Mapping[str, IntervalSet]] = field(
        default_factory=Gone, metadata=ADDED_LATER
    )


def end_facts_of(run: InProject, plan: StoredPlan, earlier: Noted | None) -> Noted:
    """Note what holds now for a plan.

    Args:
        run: the project.
        plan: the plan.
        earlier: what was noted at an earlier end of the plan: what it knows of publications, cadences and
            schemas stays, whatever has been declared since.
    """
    known = earlier or Noted()
    graph, moves = run.project.loaded.graph, run.store.history.moves_of(plan.plan_id)
    built = _built(run.project, plan, earlier)
    names = {*plan.cells, *(built or ()), *(move.model for move in moves)}
    read = {up.name for name in names if name in graph.models for up in graph.models[name].reads}
    nodes = {**graph.sources, **graph.models, **_planned(run.store, plan)}
    declared = {name: nodes[name] for name in sorted(names | read) if name in nodes}
    differing = dict(known.differing)
    new = [move for move in moves if str(move.number) not in differing]
    is_known = len(new) < len(moves)  # an end before the publication knew only what was planned
    newly_differing, newly_gone = _changed(run.store, new)
    return Noted(
        cadences={
            **_past_cadences(run, names - declared.keys()),
            **{name: node.cadence for name, node in declared.items()},
            **known.cadences,
        },
        schemas={
            **{
                name: tuple((column.name, column.dtype) for column in node.schema)
                for name, node in declared.items()
            },
            **known.schemas,
        },
        consumers=tuple(
            consumer
            for _, consumer in sorted(graph.consumers.items())
            if names & {reading.model for reading in consumer.reads}
        ),
        promise_days=run.project.terms.promise_days,
        timings=tuple(reversed(run.store.plans.timings(plan.plan_id))),
        differing={**differing, **newly_differing},
        results=known.results if earlier and is_known else _results(run.store, plan, moves),
        built=built,
        approvals=_approvals(run, plan, earlier),
        gone={**known.gone, **newly_gone},
    )


def _planned(store: Store, plan: StoredPlan) -> dict[str, Model]:
    """Give the models of a plan as it runs them; none of a plan that this release can't read."""
    try:
        return planned_models(store, read_plan(plan.content))
    except PlanFormatError as error:
        _log.warning("plan %s can't be read: %s", plan.plan_id, error)
        return {}


def _past_cadences(run: InProject, names: Iterable[str]) -> dict[str, Cadence]:
    """Give the cadences that models had which are declared no more."""
    found = {name: run.store.snapshots.last_cadence(name) for name in sorted(names)}
    return {name: cadence for name, cadence in found.items() if cadence is not None}


def _approvals(run: InProject, plan: StoredPlan, earlier: Noted | None) -> Mapping[str, str]:
    """Judge the approvals and answers of a plan that is built; of one that was promoted, its history says what counted."""
    if promoted := promotion_of(run.store.plans.events(plan.plan_id)):
        return promoted.detail.get("approvals", {})
    if plan.status is not PlanStatus.BUILT:
        return earlier.approvals if earlier else {}
    try:
        gate = run.project.gate()
        if gate is None:
            return {}
        given = verified_statements(reviewed(run.project, plan.plan_id, gate), Act.APPROVE)
        return verdicts((*given, *answers(run.project, plan.plan_id).signed))
    except BackfillAssetsError as error:  # what publishes it, refuses it then; evidence goes on
        _log.warning("the approvals of plan %s can't be judged: %s", plan.plan_id, error)
        return {}


def _built(
    project: Project, plan: StoredPlan, earlier: Noted | None
) -> Mapping[str, Mapping[str, IntervalSet]] | None:
    """Find in which published cells which column differs of what a plan has built; what is given up stays known."""
    if plan.status is not PlanStatus.BUILT:
        return earlier.built if earlier and plan.status is PlanStatus.ABANDONED else None
    of = built_plan(project, plan.plan_id)
    by_model = {planned.model: of.changing(planned) for planned in of.plan.models}
    return {name: dict(each.columns or {}) for name, each in by_model.items() if each}


def _results(
    store: Store, plan: StoredPlan, moves: Iterable[PointerMove]
) -> tuple[Invalidated, ...]:
    """Find the results that rest on cells which a plan has changed, or may while nothing of it is published."""
    changed = CellsByModel({move.model: move.changed for move in moves}) if moves else plan.cells
    return invalid_results(store, plan.environment, plan.plan_id, changed)


def end_facts_text(noted: Noted) -> str:
    """Write it as the state keeps it."""
    return dumps(noted)


def read_end_facts(text: str) -> Noted:
    """Read what the state keeps."""
    return loads(
        text, (*STORED, *CONSUMED, Cadence, IntervalSet, Timing, Noted, Result, Invalidated)
    )


def _changed(store: Store, moves: Iterable[PointerMove]) -> tuple[Differing, Gone]:
    """Find where publications differ from what was read before, and which cells they took away from readers."""
    differing, gone = Differing(), Gone()
    for move in moves:
        number, left = str(move.number), _left(store, move)
        columns = _columns(left, move.number)
        if lost := _gone(store, move, left):
            columns = {**columns, ROWS: columns.get(ROWS, IntervalSet.empty()) | lost}
            gone.setdefault(number, {})[move.model] = lost
        differing.setdefault(number, {})[move.model] = columns
    return differing, gone


def _left(store: Store, move: PointerMove) -> _Stamped:
    """Read the changed cells that the new table holds, with their stamps; none of a model that came or went."""
    if move.old is None or move.new is None or not move.changed:
        return []
    return store.views.stamps_at(move.new, move.changed)


def _gone(store: Store, move: PointerMove, left: _Stamped) -> IntervalSet:
    """Find which of the changed cells readers have lost: those of the old table that the new one does not hold."""
    if move.old is None or move.new is None:
        return IntervalSet.empty()
    if not all(store.versions.is_known(at.version) for at in move.new.layers):
        return IntervalSet.empty()
    return whole_lost(store, move, move.changed - IntervalSet.of_pairs(cell for cell, _ in left))


def whole_lost(store: Store, move: PointerMove, lost: IntervalSet) -> IntervalSet:
    """Give the cells that readers had before a move and have lost; cut otherwise since, none that others overlap.

    Args:
        store: the state.
        move: the publication.
        lost: the time that it has left without a cell.
    """
    before = store.snapshots.model(move.old.fingerprint) if lost and move.old else None
    return lost if before is None else before.cadence.snap_in(lost)


def _columns(left: _Stamped, number: int) -> dict[str, IntervalSet]:
    """Find in which of these cells which column differs since a publication, as their stamps say.

    A column that differs within its tolerance alone is not named.
    """
    bounds: dict[str, list[tuple[int, int]]] = {}
    for cell, stamps in left:
        for name in _stamped(stamps, number):
            bounds.setdefault(name, []).append(cell)
    return {name: IntervalSet.of_pairs(bounds[name]) for name in sorted(bounds)}


def _stamped(stamps: ChangedAt, number: int) -> list[str]:
    """Name the columns that a publication has changed; where other rows are, the rows alone."""
    if stamps.row_set == number:
        return [ROWS]
    return [name for name, changed in stamps.columns.items() if changed == number]
