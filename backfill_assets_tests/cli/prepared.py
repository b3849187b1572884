"""A state in which some of the toy shop is filled, written without Spark or tables."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from backfill_assets.cli.operating import operating
from backfill_assets.engine.batch.requests import batch_request
from backfill_assets.engine.fill.observing import observe_sources
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus, StoredPlan
from backfill_assets_tests.state.building import content, write

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.source import Source

NEGATIVE = AuditResult(
    audit="amount_not_negative",
    severity=Severity.BLOCKING,
    passed=False,
    found="1 of 2 rows fail amount >= 0",
    allowed="0 rows",
    failing_rows=1,
    cells=("2024-02-01",),
    sample=('{"ds":"2024-02-01","shop":"north","amount":-5.00}',),
)


@contextmanager
def opened_run(environment: str) -> Iterator[RunContext]:
    """Open a run of one environment as the command does."""
    with operating() as at:
        yield at.filling(environment)


@dataclass(frozen=True)
class Prepared:
    """Fills and fails batches in the state alone."""

    data: Path

    def land_nothing(self, *sources: Source) -> None:
        """Make the tables of sources, without a row."""
        for source in sources:
            fields = [Field(column.name, PrimitiveType(column.dtype)) for column in source.schema]
            DeltaTable.create(str(self.data / source.path), Schema(fields))

    def look(self, *sources: Source) -> None:
        """Look at sources, as a run does before it builds."""
        with opened_run("prod") as run:
            observe_sources(run.store, sources, run.data_root, None)

    def fill(self, model: str, first: str, last: str) -> str:
        """Record a batch over the cells from one key to another, as if it had been committed."""
        with opened_run("prod") as run:
            request = batch_request(run, run.graph.model(model), _span(run, model, first, last))
            write(run.store, run.store.batches.open_batch(request))
        return request.batch_id

    def serve(self, plan_id: str, model: str, first: str, last: str, *, reason: str) -> str:
        """Record a batch as one of a plan's, and the plan that it served."""
        with opened_run("prod") as run:
            span = _span(run, model, first, last)
            request = batch_request(run, run.graph.model(model), span, reason=reason)
            served = replace(request, plan_id=plan_id)
            run.store.plans.save_plan(_plan(plan_id, run.clock()))
            run.store.plans.tell(plan_id, PlanEventKind.PROMOTED, who="grace")
            write(run.store, run.store.batches.open_batch(served))
        return served.batch_id

    def propose_unreadable(self, plan_id: str) -> None:
        """Keep a plan whose content this release can't read."""
        with opened_run("prod") as run:
            kept = _plan(plan_id, run.clock())
            run.store.plans.save_plan(replace(kept, status=PlanStatus.PROPOSED))

    def change(self, model: str, first: str, last: str) -> str:
        """Record a batch that rebuilt ready cells and found other rows in them."""
        with opened_run("prod") as run:
            declared = run.graph.model(model)
            request = batch_request(
                run, declared, _span(run, model, first, last), reason="restated"
            )
            write(
                run.store,
                run.store.batches.open_batch(request),
                dict.fromkeys(request.cells, content(11, key=8)),
            )
        return request.batch_id

    def claim(self, model: str, first: str, last: str) -> str:
        """Open a batch and leave it at work."""
        with opened_run("prod") as run:
            request = batch_request(run, run.graph.model(model), _span(run, model, first, last))
            run.store.batches.open_batch(request)
        return request.batch_id

    def begin(self, model: str, first: str, last: str) -> str:
        """Open a batch, and leave it so: its process is never heard again."""
        with opened_run("prod") as run:
            request = batch_request(run, run.graph.model(model), _span(run, model, first, last))
            run.store.batches.open_batch(request)
        return request.batch_id

    def fail(self, model: str, first: str, last: str, error: str) -> str:
        """Record a batch that failed the toy shop's blocking audit."""
        with opened_run("prod") as run:
            request = batch_request(run, run.graph.model(model), _span(run, model, first, last))
            run.store.batches.open_batch(request)
            run.store.batches.fail_batch(
                request.batch_id, error=error, audits=(NEGATIVE,), finished_at=run.clock()
            )
        return request.batch_id


def _plan(plan_id: str, at: datetime) -> StoredPlan:
    return StoredPlan(
        plan_id=plan_id,
        environment="prod",
        status=PlanStatus.PROMOTED,
        content="{}",
        content_hash="",
        created_at=at,
        created_by="ada",
        reason="no ads that week",
        expires_at=at,
    )


def _span(run: RunContext, model: str, first: str, last: str) -> IntervalSet:
    cadence = run.graph.model(model).cadence
    return IntervalSet.of([Interval(cadence.cell(first).start, cadence.cell(last).end)])
