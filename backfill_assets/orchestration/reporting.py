"""Report a run to Dagster: one event for every targeted cell, and one result for every audit.

Events are logged as soon as a batch is committed, so they stay when a later batch fails. A cell that
this run did not publish gets an observation that says why, never a materialization.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import dagster as dg

from backfill_assets.execution.events import (
    Committed,
    Event,
    Failed,
    NeedsPlan,
    Skipped,
    Started,
    Waiting,
)
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.model import Model
from backfill_assets.orchestration.metadata import asset_key
from backfill_assets.orchestration.partitions import key_of
from backfill_assets.state.store import Store

SILENT = {"__source_asset_observation__": True}
"""Metadata of the step's output by which Dagster adds no materialization of its own."""


@dataclass
class Reporter:
    """Turns a run's events into Dagster's, as they happen.

    Attributes:
        context: of the step.
        model: whose cells they are.
        store: where results of earlier batches are kept.
    """

    context: dg.AssetExecutionContext
    model: Model
    store: Store
    lacking: list[str] = field(default_factory=list)
    results: list[AuditResult] = field(default_factory=list)

    def listen(self, event: Event) -> None:
        """Report one event."""
        match event:
            case Started():
                cells = self._named(event.interval)
                self.context.log.info(f"batch {event.batch_id}: {cells} started")
            case Committed():
                self._committed(event)
            case Skipped():
                self._skipped(event)
            case Failed():
                self.results += event.audits
                self._lacks(self._named(event.interval), event.error)
            case Waiting():
                self._lacks(self._ranges(event.cells), f"waits for {event.upstream}")
            case NeedsPlan():
                self._stale(event)

    def check_results(self) -> Iterator[dg.AssetCheckResult]:
        """Give one result per audit over everything that this run was about."""
        for audit in audits_of(self.model):
            found = [one for one in self.results if one.audit == audit.name]
            failed = [one for one in found if not one.passed]
            yield check_result(asset_key(self.model.name), audit.name, failed or found)

    def _committed(self, event: Committed) -> None:
        self.results += event.audits
        self.context.log.info(
            f"batch {event.batch_id}: {self._named(event.interval)} committed as delta_version "
            f"{event.delta_version}: {event.rows} rows in {event.timing.total:.1f} s"
        )
        for cell, content in event.contents.items():
            self._materialized(
                cell,
                {
                    "dagster/partition_row_count": content.rows,
                    "batch": event.batch_id,
                    "delta_version": event.delta_version,
                },
                tags={"dagster/data_version": f"{content.rows}-{content.key}"},
            )

    def _skipped(self, event: Skipped) -> None:
        for batch_id in dict.fromkeys(event.built_by.values()):
            self.results += [row.result for row in self.store.audit_results(batch_id=batch_id)]
        self.context.log.info(f"{len(event.built_by)} cells are ready already: skipped")
        for cell, batch_id in event.built_by.items():
            self._materialized(cell, {"skipped": True, "batch": batch_id}, tags={})

    def _stale(self, event: NeedsPlan) -> None:
        why = f"{event.upstream} changed since; published history changes by a plan only"
        self.context.log.warning(f"{self._ranges(event.cells)}: {why}")
        for cell in self.model.cadence.cells(event.cells):
            self.context.log_event(
                dg.AssetObservation(
                    asset_key(self.model.name),
                    partition=key_of(self.model.cadence, cell),
                    description=why,
                    metadata={"stale": True, "changed_upstream": event.upstream},
                )
            )

    def _materialized(
        self, cell: Interval, metadata: dict[str, object], tags: dict[str, str]
    ) -> None:
        self.context.log_event(
            dg.AssetMaterialization(
                asset_key(self.model.name),
                partition=key_of(self.model.cadence, cell),
                metadata=metadata,
                tags=tags,
            )
        )

    def _lacks(self, cells: str, why: str) -> None:
        self.context.log.error(f"{cells}: {why}")
        self.lacking.append(f"{cells}: {why}")

    def _named(self, interval: Interval) -> str:
        return self._ranges(IntervalSet.of([interval]))

    def _ranges(self, cells: IntervalSet) -> str:
        return f"{self.model.name} {ranges_text(self.model.cadence, cells)}"


def check_result(
    key: dg.AssetKey, name: str, results: Iterable[AuditResult]
) -> dg.AssetCheckResult:
    """Give one audit's results over several batches as one check result; the worst is shown."""
    found = list(results)
    worst = next((one for one in found if not one.passed), None)
    shown = worst or (found[0] if found else None)
    warns = shown is not None and shown.severity is Severity.WARNING
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=name,
        passed=worst is None,
        severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
        description=f"found {shown.found}, allowed {shown.allowed}" if shown else "no batch ran",
        metadata=_shown(found, shown),
    )


def _shown(found: list[AuditResult], shown: AuditResult | None) -> dict[str, object]:
    if shown is None:
        return {"batches": 0}
    return {
        "batches": len(found),
        "failing_rows": sum(one.failing_rows for one in found),
        "cells": ", ".join(shown.cells) or "none",
        "sample": dg.MetadataValue.md("\n".join(f"    {row}" for row in shown.sample) or "none"),
    }
