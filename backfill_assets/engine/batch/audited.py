"""Audit a computed batch, before its commit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.judge import judge
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.models.content import CellProfile
    from backfill_assets.warehouse.rows.computed import ComputedBatch, EmptyBatch


class AuditsFailedError(BackfillAssetsError):
    """A batch failed a blocking audit; nothing of it was committed."""

    def __init__(self, model: str, results: tuple[AuditResult, ...]) -> None:
        self.model, self.results = model, results
        super().__init__(
            f"{blocking_text(model, results)}. Nothing was committed; `backfill batches` shows the numbers "
            "and failing rows"
        )


_SHOWN = 5


def blocking_text(model: str, results: Iterable[AuditResult]) -> str:
    """Say which blocking audits of a model failed, and where; empty where none did."""
    return "; ".join(
        f"audit '{result.audit}' of '{model}' failed in {', '.join(result.cells[:_SHOWN])}"
        f"{' and more' if len(result.cells) > _SHOWN else ''}: found {result.found}, "
        f"allowed {result.allowed}"
        for result in results
        if result.blocks
    )


def audited(
    run: RunContext, batch: ComputedBatch | EmptyBatch, audits: tuple[Audit, ...]
) -> tuple[tuple[CellProfile, ...], tuple[AuditResult, ...]]:
    """Profile a batch in one action and judge it.

    Raises:
        AuditsFailedError: a blocking audit fails; it carries every result, samples included.
        DeclarationError: the query gave rows of other cells.
    """
    model = batch.model
    # Of a plan's workspace, what people read in these cells: its own table may be empty so far.
    previous = run.store.views.published_contents(
        run.environment.name, model.name, IntervalSet.of(batch.cells)
    )
    profiles = batch.profile()
    results = judge(audits, profiles, previous, model.cadence)
    sampled = tuple(
        result if result.passed else replace(result, sample=batch.failing_rows(audit))
        for audit, result in zip(audits, results, strict=True)
    )
    if any(result.blocks for result in sampled):
        raise AuditsFailedError(model.name, sampled)
    return profiles, sampled
