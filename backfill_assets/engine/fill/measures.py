"""What monitors watch of an environment: how much lacks, since when, what waits, what failed last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.engine.fill.unresolved_failures import unresolved_failures

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.planning.rule.needs_work import Work


@dataclass(frozen=True, slots=True)
class ModelMeasures:
    """What is recorded of one model; counts are cells, instants are in UTC.

    Attributes:
        model: its name.
        required: cells that must hold audited data.
        ready: those that do, stale ones included.
        missing: those that do not.
        stale: ready ones that a change of what they read has overtaken.
        owed: ready ones that were declared wrong and are not rebuilt yet.
        claimed: cells that live batches hold.
        oldest_gap: the start of the first missing cell; None where none is missing.
        failed_at: when the last failure was after which cells still need work; None for none.
    """

    model: str
    required: int
    ready: int
    missing: int
    stale: int
    owed: int
    claimed: int
    oldest_gap: datetime | None
    failed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Measures:
    """What is recorded of an environment, and of the batches of all environments.

    Attributes:
        models: of each model.
        in_flight: batches that hold a slot.
        waiting: batches that wait for a slot.
        waits: seconds that the first of them has waited; 0 where none waits.
    """

    models: tuple[ModelMeasures, ...]
    in_flight: int
    waiting: int
    waits: float


def measures(run: RunContext, names: Iterable[str]) -> Measures:
    """Measure some models of an environment by what is recorded; no source is looked at."""
    view, at = run.view(), run.clock()
    works = {name: run.work(name, view, at) for name in names}
    failed = {name: failure.at for name, failure in unresolved_failures(run, view, works).items()}
    since = run.store.limits.waiting_since()
    return Measures(
        models=tuple(
            _of_model(run.graph.model(name), work, view.claimed[name], failed.get(name))
            for name, work in works.items()
        ),
        in_flight=len(run.store.limits.in_flight()),
        waiting=len(since),
        waits=max((at - since[0]).total_seconds(), 0.0) if since else 0.0,
    )


def _of_model(
    model: Model, work: Work, claimed: IntervalSet, failed_at: datetime | None
) -> ModelMeasures:
    count, gaps = model.cadence.count, work.gaps.hull()
    return ModelMeasures(
        model=model.name,
        required=count(work.required),
        ready=count(work.ready),
        missing=count(work.gaps),
        stale=count(work.stale_cells),
        owed=count(work.owed),
        claimed=count(claimed),
        oldest_gap=gaps.start if gaps else None,
        failed_at=failed_at,
    )
