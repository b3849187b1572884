"""Gather the map of an environment: which snapshot made each published cell, and the state of the others."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from backfill_assets.engine.review.number_history import committed, moves_read
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.instants import start_at
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.review.history_map import Made, MadeBy, MappedModel, letters
from backfill_assets.snapshots.batch import EMPTY
from backfill_assets.state.plans import UnknownPlanError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.cutoff import Cutoff
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.publication import PointerMove
    from backfill_assets.state.batch_rows import BatchRow
    from backfill_assets.state.versions import Maker

_EVER = datetime.min.replace(tzinfo=UTC)
"""Where it is not known when a snapshot came: before all others."""


def map_of(run: RunContext, names: Iterable[str]) -> tuple[MappedModel, ...]:
    """Map some models as an environment publishes them; nothing is written."""
    view = run.view()
    store, moves_in = run.store.reading(), cache(run.store.history.moves_in)
    mapped: list[MappedModel] = []
    for name in names:
        model = run.graph.model(name)
        work = run.work(name, view, run.clock())
        state, cutoff = view.models.get(name), view.cutoffs.get(name)
        makers = () if state is None else _makers(run, state.pointer)
        rows = committed(store, name)
        moves = moves_read(store, moves_in, run.environment.name, name, rows)
        mapped.append(
            MappedModel(
                model=name,
                made=_made(run, makers, moves, rows),
                empty=_cells(maker for maker in makers if maker.reason == EMPTY),
                missing=work.gaps,
                stale=work.stale_cells,
                cutoff=cutoff,
                boundary=_boundary(model, cutoff),
                is_whole=model.cadence.unit is Unit.WHOLE,
                is_removed=name in run.removed,
            )
        )
    return tuple(mapped)


def _makers(run: RunContext, pointer: Pointer) -> tuple[Maker, ...]:
    """Give what made each cell, from the table that answers for it."""
    by_cell: dict[object, Maker] = {}
    for number, layer in enumerate(pointer.layers):
        for maker in run.store.versions.makers(layer.version, layer.delta_version):
            if number == 0 or maker.cell not in pointer.certain:
                by_cell.setdefault(maker.cell, maker)
    return tuple(by_cell.values())


def _made(
    run: RunContext, makers: Iterable[Maker], moves: list[PointerMove], rows: list[BatchRow]
) -> tuple[Made, ...]:
    by_definition: dict[str, list[Maker]] = {}
    definitions: dict[str, str] = {}
    for maker in makers:
        if maker.fingerprint not in definitions:
            definitions[maker.fingerprint] = _definition(run, maker.fingerprint)
        by_definition.setdefault(definitions[maker.fingerprint], []).append(maker)
    origins = [
        (_brought({maker.fingerprint for maker in several}, moves, rows), several)
        for several in by_definition.values()
    ]
    ordered = sorted(origins, key=lambda each: each[0][0] or _EVER)
    return tuple(
        Made(
            letter=letter,
            fingerprint=several[0].fingerprint,
            since=since,
            plan_id=plan_id,
            by=_by_plan(run, several),
        )
        for letter, ((since, plan_id), several) in zip(letters(), ordered, strict=False)
    )


def _brought(
    fingerprints: set[str], moves: list[PointerMove], rows: list[BatchRow]
) -> tuple[datetime | None, str | None]:
    """Say when a definition was published first, and by which plan; where by none, when it first built."""
    for move in moves:
        if move.old is not None and move.old.fingerprint in fingerprints:
            break  # it was there before any plan
        if move.new is not None and move.new.fingerprint in fingerprints:
            return move.at, move.plan_id
    built = [row.started_at for row in rows if row.fingerprint in fingerprints]
    return min(built, default=None), None


def _by_plan(run: RunContext, makers: Iterable[Maker]) -> tuple[MadeBy, ...]:
    by_plan: dict[str | None, list[Maker]] = {}
    for maker in makers:
        if maker.reason != EMPTY:
            by_plan.setdefault(maker.plan_id, []).append(maker)
    return tuple(
        MadeBy(plan_id, _reason(run, plan_id), _cells(several))
        for plan_id, several in by_plan.items()
    )


def _definition(run: RunContext, fingerprint: str) -> str:
    """Give what snapshots have in common that differ in descriptions only."""
    snapshot = run.store.snapshots.find(fingerprint)
    return fingerprint if snapshot is None else snapshot.version


def _reason(run: RunContext, plan_id: str | None) -> str:
    try:
        return "" if plan_id is None else run.store.plans.get(plan_id).reason
    except UnknownPlanError:
        return ""


def _cells(makers: Iterable[Maker]) -> IntervalSet:
    return IntervalSet.of(maker.cell for maker in makers)


def _boundary(model: Model, cutoff: Cutoff | None) -> int | None:
    if cutoff is None:
        return None
    return epoch_of(model.cadence.ceil(start_at(cutoff.since, model.cadence.tz)))
