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
    LeftStale,
    Skipped,
    SourceNote,
    Started,
    TryingAgain,
    Waiting,
)
from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted, ranges_text
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.content import Content
from backfill_assets.models.model import Model
from backfill_assets.orchestration.metadata import asset_key, check_name
from backfill_assets.orchestration.partitions import key_of
from backfill_assets.orchestration.private_names import (
    DagsterEventBatchMetadata,
    append,
    generate_event_batch_id,
)
from backfill_assets.orchestration.released_runs import op_name
from backfill_assets.snapshots.batch import COMMITTED
from backfill_assets.snapshots.environment import PROD
from backfill_assets.state.store import Store

SILENT = {"__source_asset_observation__": True}
"""Metadata of the step's output by which Dagster adds no materialization of its own."""
DATA_VERSION_TAG = "dagster/data_version"
"""The tag of a materialization that names the cell's content."""
_MOST_CELLS, _MOST_ROWS = 20, 10
"""How many failing cells and rows a check shows: as many as one audit of a batch keeps."""


@dataclass
class Reporter:
    """Turns a run's events into Dagster's, as they happen.

    Attributes:
        context: of the step.
        model: whose cells they are.
        store: where results of earlier batches are kept.
        environment: which is filled.
        lacking: why cells are not ready, a sentence each.
        results: of the audits.
        audited: the batches whose results are among them.
        reported: cells that have a report.
        settled: those of them that have failed, or are reported as materialized.
    """

    context: dg.AssetExecutionContext
    model: Model
    store: Store
    environment: str
    lacking: list[str] = field(default_factory=list)
    results: list[AuditResult] = field(default_factory=list)
    audited: set[str] = field(default_factory=set[str])
    reported: IntervalSet = field(default_factory=IntervalSet.empty)
    settled: IntervalSet = field(default_factory=IntervalSet.empty)

    def listen(self, event: Event) -> None:  # noqa: C901 - one case for each event
        """Report one event."""
        match event:
            case Started():
                cells = self._ranges(event.cells)
                self.context.log.info("batch %s: %s started", event.batch_id, cells)
            case SourceNote():
                self.context.log.warning(event.note)
            case Delayed():
                self.context.log.info("%s waits for %s", self._ranges(event.cells), event.why)
            case TryingAgain():
                self.context.log.warning("%s: %s", self._ranges(event.cells), event.words)
            case Committed():
                self._committed(event)
            case Skipped():
                self._skipped(event)
            case Failed():
                self.results += event.audits
                self._lacks(event.cells, event.error)
            case Waiting():
                self._lacks(event.cells, f"waits for {event.waits_for}")
            case LeftStale():
                metadata = {"stale": True, "changed_upstream": event.upstream}
                self._observed(event.cells - self.reported, event.words, metadata)

    def rebuilding(self, event: Event) -> None:
        """Report one event of a plan's workspace: nothing of it is published yet."""
        if isinstance(event, Committed) and event.model == self.model.name:
            cells = self._ranges(event.cells)
            self.context.log.info("batch %s: %s built, unpublished", event.batch_id, cells)
        elif isinstance(event, SourceNote) or (
            isinstance(event, Failed) and event.model == self.model.name
        ):
            self.listen(event)

    def rebuilt(self, done: Rebuilt, targeted: IntervalSet) -> None:
        """Report what became of published cells that were launched again; the plan may build others besides."""
        if built := (done.cells - done.left) & targeted:
            self._rebuilt(done, built)
        self._left_to_do(done.left, done.plan_id)
        if done.left:
            self.lacking.append(_unfinished(done.plan_id))

    def _rebuilt(self, done: Rebuilt, built: IntervalSet) -> None:
        self._found_for(done.plan_id, built)
        contents = self.store.views.content_at_pin(self.environment, self.model.name, built)
        why = None if done.promoted else _waits(done.plan_id)
        metadata: dict[str, Any] = {"plan": done.plan_id}
        if why is None:
            metadata["same_content"] = True
            self.context.log.info("%s: %s", self._ranges(built), _same(done.plan_id))
        else:
            metadata |= {"waits_for_approval": why, **self._promote(done.plan_id)}
            self.context.log.warning("%s: %s", self._ranges(built), why)
        self._materialized({cell: (content, metadata) for cell, content in contents.items()}, why)

    def untouched(self, cells: IntervalSet, required: IntervalSet) -> None:
        """Report those of the targeted cells that have no report yet."""
        remaining = cells - self.reported
        if remaining & required:
            self._lacks(
                remaining & required, "left by another run that was at work here; run again"
            )
        if remaining - required:
            self._observed(
                remaining - required,
                "not required, not due yet, or before a cutoff: nothing was done",
                {},
            )

    def unfailed(self, cells: IntervalSet) -> None:
        """Report those cells that are published, and neither failed nor reported as materialized, as what they hold."""
        remaining = cells - self.settled
        contents = self.store.views.content_at_pin(PROD, self.model.name, remaining)
        self._materialized(
            {
                cell: (contents[cell], {"skipped": True})
                for cell in self.model.cadence.cells(remaining)
                if cell in contents
            }
        )

    def check_results(self) -> Iterator[dg.AssetCheckResult]:
        """Give one result per audit of the loaded model over all cells of this run.

        An audit without any measurement has no result if cells are lacking, since it has not passed. What
        runs in the environment may lack an audit that an edit has added: it warns, and keeps no reader
        from being filled. So does every audit where cells of another environment than prod were built: they
        say nothing of the asset.
        """
        audits = {check_name(audit.name) for audit in audits_of(self.model)}
        for spec in self.context.assets_def.check_specs:
            results = [result for result in self.results if check_name(result.audit) == spec.name]
            if self.environment != PROD:
                why = (
                    f"the run has built cells of {self.environment}, and the check is about {PROD}"
                )
                yield not_evaluated(spec.asset_key, spec.name, why)
            elif spec.name not in audits:
                yield not_promoted(spec.asset_key, spec.name, self.environment)
            elif results or not self.lacking:
                yield check_result(spec.asset_key, spec.name, results)

    def _found_for(self, plan_id: str, cells: IntervalSet) -> None:
        """Take over what audits have found in cells that are built for a plan, by this run or another."""
        built_by = {
            cell: row.batch_id
            for row in self.store.batches.of_plan(plan_id)
            if (row.model, row.status) == (self.model.name, COMMITTED)
            for cell in self.model.cadence.cells(row.stretches & cells)
        }
        self._found_by(built_by.values())

    def _found_by(self, batches: Iterable[str]) -> None:
        """Take over what the audits of batches have found, of each batch once."""
        for batch_id in dict.fromkeys(batches):
            if batch_id not in self.audited:
                rows = self.store.batches.audit_results(batch_id=batch_id)  # the last attempt first
                last = {row.audited.attempt for row in rows[:1]}
                self.results += [row.result for row in rows if row.audited.attempt in last]
                self.audited.add(batch_id)

    def _committed(self, event: Committed) -> None:
        self._found_by([event.batch_id])
        self.context.log.info(
            "batch %s: %s committed as delta_version %d: %d rows in %.1f s (%s)",
            event.batch_id,
            self._ranges(event.cells),
            event.delta_version,
            event.rows,
            event.timing.total,
            ", ".join(f"{step} {took:.1f}" for step, took in asdict(event.timing).items()),
        )
        metadata = {"batch": event.batch_id, "delta_version": event.delta_version}
        self._materialized({cell: (content, metadata) for cell, content in event.contents.items()})

    def _skipped(self, event: Skipped) -> None:
        self._found_by(event.built_by.values())
        self.context.log.info("%s ready already, skipped", counted(len(event.built_by), "cell"))
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
        """Report cells as materialized: each with its content, further metadata and why it is reported."""
        self._settle(IntervalSet.of(cells))
        events = [
            self._event(cell, content, metadata, why) for cell, (content, metadata) in cells.items()
        ]
        began = time.monotonic()
        log_events(self.context, events)
        took = time.monotonic() - began
        self.context.log.debug("told Dagster of %d cells in %.2f s", len(events), took)

    def _event(
        self, cell: Interval, content: Content | None, metadata: Mapping[str, Any], why: str | None
    ) -> dg.AssetMaterialization:
        rows: dict[str, Any] = {"dagster/partition_row_count": content.rows} if content else {}
        return dg.AssetMaterialization(
            asset_key(self.model.name),
            description=why,
            partition=key_of(self.model.cadence, cell),
            metadata={**rows, **metadata},
            tags={DATA_VERSION_TAG: data_version(content)} if content else {},
        )

    def _observed(self, cells: IntervalSet, why: str, metadata: dict[str, Any]) -> None:
        self.reported |= cells
        self.context.log.warning("%s: %s", self._ranges(cells), why)
        events = [
            dg.AssetObservation(
                asset_key(self.model.name),
                partition=key_of(self.model.cadence, cell),
                description=why,
                metadata=metadata,
            )
            for cell in self.model.cadence.cells(cells)
        ]
        log_events(self.context, events)

    def _left_to_do(self, cells: IntervalSet, plan_id: str) -> None:
        """Report those cells that a plan has not built and that have no report yet."""
        if remaining := cells - self.reported:
            self._lacks(remaining, f"left to do in plan {plan_id}: `backfill show {plan_id}`")

    def _settle(self, cells: IntervalSet) -> None:
        self.reported |= cells
        self.settled |= cells

    def _lacks(self, cells: IntervalSet, why: str) -> None:
        self._settle(cells)
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
        f"`backfill promote {plan_id}` publishes it, unless the plan has ended since (`backfill show {plan_id}`)"
    )


def _same(plan_id: str) -> str:
    return f"built again, and nothing in plan {plan_id} is different: the plan is promoted, and nothing is left to do"


def _unfinished(plan_id: str) -> str:
    return (
        f"plan {plan_id} of this launch is left with what it has built: re-execute the run or "
        f"`backfill apply {plan_id}` to go on, or `backfill abandon {plan_id}` to give it up"
    )


def data_version(content: Content) -> str:
    """Name what a cell holds: equal content, equal name, whenever it was built."""
    text = f"{content.rows}|{content.key}|{sorted(content.columns.items())}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def check_result(
    key: dg.AssetKey, name: str, results: Iterable[AuditResult]
) -> dg.AssetCheckResult:
    """Give one audit's results over several batches as one check result; the worst is shown.

    An earlier definition of the audit may have warned where today's blocks.
    """
    listed = sorted(results, key=lambda result: result.severity is Severity.WARNING)
    failed = [result for result in listed if not result.passed]
    shown = next(iter(failed or listed), None)
    warns = shown is not None and shown.severity is Severity.WARNING
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=name,
        passed=not failed,
        severity=dg.AssetCheckSeverity.WARN if warns else dg.AssetCheckSeverity.ERROR,
        description=_numbers(failed or listed),
        metadata=_shown(failed or listed),
    )


def not_promoted(key: dg.AssetKey, name: str, environment: str) -> dg.AssetCheckResult:
    """Warn of an audit that is declared, and that what an environment runs does not have yet."""
    why = f"what {environment} runs does not have this audit until a plan of the edit is promoted"
    return not_evaluated(key, name, why)


def not_evaluated(key: dg.AssetKey, name: str, why: str) -> dg.AssetCheckResult:
    """Warn that a run says nothing of a check: a step has to give a result for each."""
    return dg.AssetCheckResult(
        asset_key=key,
        check_name=name,
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"not evaluated: {why}",
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
    return f"failed in {len(results)} batches, {counted(rows, 'failing row')} in all; in the first: {first}"


def _shown(results: list[AuditResult]) -> dict[str, Any]:
    """Give the numbers of results, and the first failing cells and rows of all of them."""
    if not results:
        return {"batches": 0}
    cells = dict.fromkeys(cell for result in results for cell in result.cells)
    sample = [f"    {row}" for result in results for row in result.sample]
    return {
        "batches": len(results),
        "failing_rows": sum(result.failing_rows for result in results),
        "failing_cells": ", ".join([*cells][:_MOST_CELLS]) or "none",
        "sample": dg.MetadataValue.md("\n".join(sample[:_MOST_ROWS]) or "none"),
    }


def log_events(
    context: dg.AssetExecutionContext,
    events: Sequence[dg.AssetMaterialization] | Sequence[dg.AssetObservation],
) -> None:
    """Report materializations, or observations, of a step; the storage gets them together."""
    batch, last = generate_event_batch_id(), len(events) - 1
    step = context.get_step_execution_context()
    for number, event in enumerate(events):
        where = DagsterEventBatchMetadata(batch, is_end=number == last)
        dagster_event = (
            dg.DagsterEvent.asset_materialization(step, event, where)
            if isinstance(event, dg.AssetMaterialization)
            else dg.DagsterEvent.asset_observation(step, event, where)
        )
        append(context, dagster_event)
