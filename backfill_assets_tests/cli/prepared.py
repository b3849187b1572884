"""A state in which some of the toy shop is filled, written without Spark or tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.cli.project import opened_run
from backfill_assets.execution.requests import batch_request
from backfill_assets.intervals.interval import Interval
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets_tests.state.building import content, write

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.execution.run_context import RunContext

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


@dataclass(frozen=True)
class Prepared:
    """Fills and fails batches in the state alone."""

    data: Path

    def fill(self, model: str, first: str, last: str) -> str:
        """Record a batch over the cells from one key to another, as if it had been committed."""
        with opened_run("prod") as run:
            request = batch_request(run, run.graph.model(model), _span(run, model, first, last))
            write(run.store, run.store.open_batch(request))
        return request.batch_id

    def change(self, model: str, first: str, last: str) -> str:
        """Record a batch that rebuilt ready cells and found other rows in them."""
        with opened_run("prod") as run:
            declared = run.graph.model(model)
            request = batch_request(
                run, declared, _span(run, model, first, last), reason="restated"
            )
            write(
                run.store,
                run.store.open_batch(request),
                dict.fromkeys(request.cells, content(11, key=8)),
            )
        return request.batch_id

    def claim(self, model: str, first: str, last: str) -> str:
        """Open a batch and leave it at work."""
        with opened_run("prod") as run:
            request = batch_request(run, run.graph.model(model), _span(run, model, first, last))
            run.store.open_batch(request)
        return request.batch_id

    def fail(self, model: str, first: str, last: str, error: str) -> str:
        """Record a batch that failed the toy shop's blocking audit."""
        with opened_run("prod") as run:
            request = batch_request(run, run.graph.model(model), _span(run, model, first, last))
            run.store.open_batch(request)
            run.store.fail_batch(
                request.batch_id, error=error, audits=(NEGATIVE,), finished_at=run.clock()
            )
        return request.batch_id


def _span(run: RunContext, model: str, first: str, last: str) -> Interval:
    cadence = run.graph.model(model).cadence
    return Interval(cadence.cell(first).start, cadence.cell(last).end)
