"""Report a run to Dagster: one event for every targeted cell, and one result for every audit.

Events are logged as soon as a batch is committed, so they stay when a later batch fails. A materialization
says what readers read: of a cell that waits for a plan it has the content as it was, the plan, and a link
that promotes it. A cell of which nothing is published gets an observation that says why.
"""

import hashlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import dagster as dg

from backfill_assets.engine.automatic.by_hand import Rebuilt
from backfill_assets.engine.project.events import (
    Committed,
    Delayed,
    Event,
    Failed,
    NeedsPlan,
    Noted,
    Skipped,
    Started,
    TryingAgain,
    Waiting,
)
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.content import Content
from backfill_assets.models.model import Model
from backfill_assets.orchestration.metadata import asset_key
from backfill_assets.orchestration.partitions import key_of
from backfill_assets.orchestration.private_names import (
    DagsterEventBatchMetadata,
    append,
    generate_event_batch_id,
)
from backfill_assets.orchestration.released_runs import op_name
from backfill_assets.state.store import Store

SILENT = {"__source_asset_observation__": True}
"""Metadata of the step's output by which Dagster adds no materialization of its own."""
DATA_VERSION_TAG = "dagster/data_version"
"""Of a materialization: what the cell holds."""


@dataclass
class Reporter:
    """Turns a run's events into Dagster's, as they happen.

    Attributes:
        context: of the step.
        model: whose cells they are.
        store: where results of earlier batches are kept.
        environment: which is filled.
    """

    context: dg.AssetExecutionContext
    model: Model
    store: Store
    environment: str
    lacking: list[str] = field(default_factory=list)
    results: list[AuditResult] = field(default_factory=list)
    told: IntervalSet = field(default_factory=IntervalSet.empty)

    def listen(self, event: Event) -> None:
        """Report one event."""
        match event:
            case Started():
                cells = self._ranges(event.stretches)
                self.context.log.info("batch %s: %s started", event.batch_id, cells)
            case Noted() | Delayed() | TryingAgain():
                self._said(event)
            case Committed():
                self._committed(event)
            case Skipped():
                self._skipped(event)
            case Failed():
                self.results += event.audits
                self._lacks(event.stretches, event.error)
            case Waiting():
                self._lacks(event.cells, f"waits for {event.upstream}")
            case NeedsPlan():
                said = {"stale": True, "changed_upstream": event.upstream}
                self._observed(event.cells - self.told, event.words, said)

    def _said(self, event: Noted | Delayed | TryingAgain) -> None:
        log = self.context.log
        match event:
            case Noted():
                log.warning(event.note)
            case Delayed():
                log.info("%s waits for %s", self._ranges(event.stretches), event.why)
            case TryingAgain():
                log.warning("%s: %s", self._ranges(event.stretches), event.words)

    def rebuilding(self, event: Event) -> None:
        """Report one event of a plan's workspace: nothing of it is published yet."""
        if isinstance(event, Committed) and event.model == self.model.name:
            self.results += event.audits
            cells = self._ranges(event.stretches)
            self.context.log.info("batch %s: %s built, unpublished", event.batch_id, cells)
        elif isinstance(event, Noted) or (
            isinstance(event, Failed) and event.model == self.model.name
        ):
            self.listen(event)

    def rebuilt(self, done: Rebuilt) -> None:
        """Report what became of published cells that were launched again."""
        built = done.cells - done.left
        contents = self.store.views.content_at_pin(self.environment, self.model.name, built)
        said: dict[str, Any] = {"plan": done.plan_id}
        if done.promoted:
            said["same_content"] = True
        else:
            said |= {"waits_for_approval": True, "unchanged": True, **self._promote(done.plan_id)}
            self.context.log.warning("%s: %s", self._ranges(built), _waits(done.plan_id))
        why = None if done.promoted else _waits(done.plan_id)
        self._materialized({cell: (content, said) for cell, content in contents.items()}, why)
        if left := done.left - self.told:
            self._lacks(left, f"left to do in plan {done.plan_id}: `backfill show {done.plan_id}`")

    def untouched(self, cells: IntervalSet, required: IntervalSet) -> None:
        """Report those of the targeted cells that nothing was told of."""
        left = cells - self.told
        if left & required:
            self._lacks(left & required, "left by another run that was at work here; run again")
        if left - required:
            self._observed(left - required, "not required, or not due yet: nothing was done", {})

    def check_results(self) -> Iterator[dg.AssetCheckResult]:
        """Give one result per audit over everything that this run was about.

        An audit that nothing was measured for has none when cells lack: it can't be said to pass.
        """
        for audit in audits_of(self.model):
            found = [result for result in self.results if result.audit == audit.name]
            if found or not self.lacking:
                yield check_result(asset_key(self.model.name), audit.name, found)

    def _committed(self, event: Committed) -> None:
        self.results += event.audits
        self.context.log.info(
            "batch %s: %s committed as delta_version %d: %d rows in %.1f s (%s)",
            event.batch_id,
            self._ranges(event.stretches),
            event.delta_version,
            event.rows,
            event.timing.total,
            ", ".join(f"{step} {took:.1f}" for step, took in asdict(event.timing).items()),
        )
        said = {"batch": event.batch_id, "delta_version": event.delta_version}
        self._materialized({cell: (content, said) for cell, content in event.contents.items()})

    def _skipped(self, event: Skipped) -> None:
        for batch_id in dict.fromkeys(event.built_by.values()):
            self.results += [
                row.result for row in self.store.batches.audit_results(batch_id=batch_id)
            ]
        self.context.log.info("%d cells are ready already: skipped", len(event.built_by))
        ready = IntervalSet.of(event.built_by)
        contents = self.store.views.content_at_pin(self.environment, self.model.name, ready)
        self._materialized(
            {
                cell: (contents.get(cell), {"skipped": True, "batch": batch_id})
                for cell, batch_id in event.built_by.items()
            }
        )

    def _promote(self, plan_id: str) -> dict[str, dg.MetadataValue]:
        """Give a link to the form that promotes a plan, filled in; none where no webserver knows the run."""
        origin = self.context.run.remote_job_origin
        if origin is None:
            return {}
        location = origin.repository_origin.code_location_origin.location_name
        return {"promote": dg.MetadataValue.url(promote_form(location, plan_id))}

    def _materialized(
        self,
        cells: Mapping[Interval, tuple[Content | None, Mapping[str, Any]]],
        why: str | None = None,
    ) -> None:
        """Report cells as materialized: with what each holds, and what else there is to say of it."""
        self.told |= IntervalSet.of(cells)
        events = [self._event(cell, content, said, why) for cell, (content, said) in cells.items()]
        began = time.monotonic()
        log_events(self.context, events)
        took = time.monotonic() - began
        self.context.log.debug("told Dagster of %d cells in %.2f s", len(events), took)

    def _event(
        self, cell: Interval, content: Content | None, said: Mapping[str, Any], why: str | None
    ) -> dg.AssetMaterialization:
        rows: dict[str, Any] = {"dagster/partition_row_count": content.rows} if content else {}
        return dg.AssetMaterialization(
            asset_key(self.model.name),
            description=why,
            partition=key_of(self.model.cadence, cell),
            metadata={**rows, **said},
            tags={DATA_VERSION_TAG: data_version(content)} if content else {},
        )

    def _observed(self, cells: IntervalSet, why: str, said: dict[str, Any]) -> None:
        self.told |= cells
        self.context.log.warning("%s: %s", self._ranges(cells), why)
        events = [
            dg.AssetObservation(
                asset_key(self.model.name),
                partition=key_of(self.model.cadence, cell),
                description=why,
                metadata=said,
            )
            for cell in self.model.cadence.cells(cells)
        ]
        log_events(self.context, events)

    def _lacks(self, cells: IntervalSet, why: str) -> None:
        self.told |= cells
        self.lacking.append(f"{self._ranges(cells)}: {why}")
        self.context.log.error(self.lacking[-1])

    def _ranges(self, cells: IntervalSet) -> str:
        return f"{self.model.name} {ranges_text(self.model.cadence, cells)}"


def promote_form(location: str, plan_id: str) -> str:
    """Give the address, on the webserver, of the launchpad's form that promotes a plan, filled in."""
    form = f"ops:\n  {op_name('promote')}:\n    config:\n      plan: {plan_id}\n"
    query = urlencode({"config": form}, quote_via=quote)
    return f"/locations/{quote(location, safe='')}/jobs/promote/playground/setup?{query}"


def _waits(plan_id: str) -> str:
    return (
        f"waits for approval, plan {plan_id}: it is built and not published, and the cell holds what it held; "
        f"`backfill promote {plan_id}` publishes it"
    )


def data_version(content: Content) -> str:
    """Name what a cell holds: equal content, equal name, whenever it was built."""
    said = f"{content.rows}|{content.key}|{sorted(content.columns.items())}"
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def check_result(
    key: dg.AssetKey, name: str, results: Iterable[AuditResult]
) -> dg.AssetCheckResult:
    """Give one audit's results over several batches as one check result; the worst is shown."""
    found = list(results)
    failed = [one for one in found if not one.passed]
    shown = next(iter(failed or found), None)
    warns = shown is not None and shown.severity is Severity.WARNING
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=name,
        passed=not failed,
        severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
        description=_numbers(failed or found),
        metadata=_shown(failed or found, shown),
    )


def _numbers(results: Sequence[AuditResult]) -> str:
    """Say what was found; of several batches also how many, and their failing rows together."""
    if not results:
        return "nothing to audit"
    first = f"found {results[0].found}, allowed {results[0].allowed}"
    if len(results) == 1:
        return first
    if all(result.passed for result in results):
        return f"passed in {len(results)} batches; in the first: {first}"
    rows = sum(result.failing_rows for result in results)
    return f"failed in {len(results)} batches, {rows:,} failing rows in all; in the first: {first}"


def _shown(found: list[AuditResult], shown: AuditResult | None) -> dict[str, Any]:
    if shown is None:
        return {"batches": 0}
    return {
        "batches": len(found),
        "failing_rows": sum(one.failing_rows for one in found),
        "cells": ", ".join(shown.cells) or "none",
        "sample": dg.MetadataValue.md("\n".join(f"    {row}" for row in shown.sample) or "none"),
    }


def log_events(
    context: dg.AssetExecutionContext,
    said: Sequence[dg.AssetMaterialization] | Sequence[dg.AssetObservation],
) -> None:
    """Report materializations, or observations, of a step; the storage gets them together."""
    batch, last = generate_event_batch_id(), len(said) - 1
    step = context.get_step_execution_context()
    for number, one in enumerate(said):
        where = DagsterEventBatchMetadata(batch, is_end=number == last)
        told = (
            dg.DagsterEvent.asset_materialization(step, one, where)
            if isinstance(one, dg.AssetMaterialization)
            else dg.DagsterEvent.asset_observation(step, one, where)
        )
        append(context, told)
