"""Tell Dagster's event log what is published, and what sources hold, where that changed without Dagster."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dagster as dg

from backfill_assets.engine.project.run_context import RunContext
from backfill_assets.models.audit import Audit, Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.model import Model
from backfill_assets.orchestration.metadata import PUBLISHED, asset_key, check_name, report_metadata
from backfill_assets.orchestration.partitions import key_of
from backfill_assets.orchestration.private_names import report_without_run
from backfill_assets.orchestration.reporting import DATA_VERSION_TAG, check_result, data_version
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.observation import ObservedSource
from backfill_assets.state.published_audits import PublishedAudit


def report_ready(
    instance: dg.DagsterInstance,
    run: RunContext,
    progress: Callable[[str, int, int], None] | None = None,
) -> int:
    """Report every ready cell whose content differs from what Dagster was told last, and the last audits of them.

    A cell that holds what Dagster was told last is left alone; one that a promotion, a rollback or
    an undo has changed since gets a new materialization. So does one that needs no work and that Dagster shows as
    failed, since a run that was to build it again has failed.

    Args:
        instance: whose event log gets the reports.
        run: the environment; only read.
        progress: called with the model, how many of its cells are reported, and how many there are.

    Returns:
        How many cells were reported.
    """
    for seen in run.store.sources.observed().values():
        if seen.source in run.graph.sources:
            _report_source(instance, seen)
    reported = sum(_report_model(instance, run, name, progress) for name in run.graph.order)
    pointers = run.store.environments.pointers(run.environment.name)
    for name in run.graph.order:
        _report_published_audits(instance, run, run.graph.model(name), pointers.get(name))
    return reported


def _report_model(
    instance: dg.DagsterInstance,
    run: RunContext,
    name: str,
    progress: Callable[[str, int, int], None] | None,
) -> int:
    model, view = run.graph.model(name), run.view()
    state = view.models.get(name)
    if state is None or not state.ready:
        return 0
    versions, failed = _known(instance, asset_key(name)), _failed(instance, asset_key(name))
    settled = {*model.cadence.cells(state.ready - run.work(name, view).stale_cells)}
    contents = run.store.views.content_at_pin(run.environment.name, name, state.ready)
    batches = {
        cell: ready.batch_id for ready in state.runs for cell in model.cadence.cells(ready.interval)
    }
    lacking = [
        cell
        for cell in sorted(contents)
        if versions.get(key_of(model.cadence, cell) or "") != data_version(contents[cell])
        or (cell in settled and key_of(model.cadence, cell) in failed)
    ]
    reports = {
        batch_id: _plan_of(run, batch_id) for batch_id in {batches[cell] for cell in lacking}
    }
    materializations = [
        dg.AssetMaterialization(
            asset_key(name),
            partition=key_of(model.cadence, cell),
            metadata={
                "dagster/partition_row_count": contents[cell].rows,
                "batch": batches[cell],
                "delta_version": state.pointer.delta_version,
                **reports[batches[cell]],
            },
            tags={DATA_VERSION_TAG: data_version(contents[cell])},
        )
        for cell in lacking
    ]
    for done in report_without_run(instance, materializations):
        if progress is not None:
            progress(name, done, len(lacking))
    if lacking:
        _report_audits(instance, run, model, {batches[cell] for cell in lacking})
    return len(lacking)


def _plan_of(run: RunContext, batch_id: str) -> dict[str, Any]:
    """Name the plan that a batch served, and the report of that plan; nothing of a batch that filled gaps."""
    row = run.store.batches.find(batch_id)
    if row is None or row.plan_id is None:
        return {}
    return {"plan": row.plan_id, **report_metadata(run, row.plan_id)}


def _report_source(instance: dg.DagsterInstance, seen: ObservedSource) -> None:
    """Report where a source's table stood when it was looked at last, once for each delta_version.

    A materialization, for the table holds what others have written; and an observation, for that is all
    that Dagster's page shows of a source which nothing of this project lands.
    """
    key, version = asset_key(seen.source), str(seen.head)
    latest = _latest(instance, key)
    if latest is not None and (latest.tags or {}).get(DATA_VERSION_TAG) == version:
        return
    looked = seen.observed_at.isoformat() if seen.observed_at else "not known"
    metadata = {"delta_version": seen.head, "looked_at": looked, "bytes": seen.bytes or 0}
    for event in (
        dg.AssetMaterialization(key, metadata=metadata, tags={DATA_VERSION_TAG: version}),
        dg.AssetObservation(key, metadata=metadata, tags={DATA_VERSION_TAG: version}),
    ):
        instance.report_runless_asset_event(event)


def _report_audits(
    instance: dg.DagsterInstance, run: RunContext, model: Model, batches: set[str]
) -> None:
    """Report what the audits of these batches found, one evaluation per check."""
    audited = [
        row.result
        for batch in sorted(batches)
        for row in run.store.batches.audit_results(batch_id=batch)
    ]
    for audit in audits_of(model):
        results = [result for result in audited if result.audit == audit.name]
        if results:
            _report_check(instance, model, audit, check_name(audit.name), results)


def _report_published_audits(
    instance: dg.DagsterInstance, run: RunContext, model: Model, pointer: Pointer | None
) -> None:
    """Report what the last audit of a model's published data found, if Dagster has not evaluated it since.

    One that passed says nothing of what was published after it, so it is not reported then; a failure is.
    """
    history = run.store.published_audits.history(run.environment.name, model.name)
    last = {row.result.audit: row for row in history if row.audited_at == history[0].audited_at}
    for audit in audits_of(model):
        row, check = last.get(audit.name), f"{PUBLISHED}{check_name(audit.name)}"
        if row is None or (row.result.passed and not _is_of(pointer, row)):
            continue
        key = dg.AssetCheckKey(asset_key(model.name), check)
        record = instance.get_latest_asset_check_evaluation_record(key)
        # The record's own time is in whole seconds.
        if (
            record is None
            or record.event is None
            or record.event.timestamp < row.audited_at.timestamp()
        ):
            read = {
                "audited_at": row.audited_at.isoformat(),
                "delta_version": row.of.delta_version,
            }
            _report_check(instance, model, audit, check, [row.result], read)


def _is_of(pointer: Pointer | None, row: PublishedAudit) -> bool:
    """Whether an audit has read what a pointer names now."""
    read = (row.of.version, row.of.delta_version)
    return pointer is not None and (pointer.version, pointer.delta_version) == read


def _report_check(
    instance: dg.DagsterInstance,
    model: Model,
    audit: Audit,
    check: str,
    results: Sequence[AuditResult],
    read: Mapping[str, Any] | None = None,
) -> None:
    evaluation = check_result(asset_key(model.name), check, results)
    instance.report_runless_asset_event(
        dg.AssetCheckEvaluation(
            asset_key=asset_key(model.name),
            check_name=check,
            passed=evaluation.passed,
            severity=evaluation.severity,
            description=evaluation.description,
            metadata={**evaluation.metadata, **(read or {})},
            blocking=audit.severity is Severity.BLOCKING,
        )
    )


def _failed(instance: dg.DagsterInstance, key: dg.AssetKey) -> set[str]:
    """Name the partitions that Dagster shows as failed: the last run that was to materialize them has failed."""
    events = instance.event_log_storage
    tried = events.get_latest_asset_partition_materialization_attempts_without_materializations(key)
    if not tried:
        return set()
    runs = list({run_id for run_id, _ in tried.values()})
    filters = dg.RunsFilter(run_ids=runs, statuses=[dg.DagsterRunStatus.FAILURE])
    failed = {run.run_id for run in instance.get_runs(filters)}
    return {partition for partition, (run_id, _) in tried.items() if run_id in failed}


def _known(instance: dg.DagsterInstance, key: dg.AssetKey) -> dict[str, str]:
    """Read the data versions that Dagster was told last, by partition; "" for an unpartitioned asset."""
    tags_by_partition = instance.event_log_storage.get_latest_tags_by_partition(
        key, dg.DagsterEventType.ASSET_MATERIALIZATION, [DATA_VERSION_TAG]
    )
    versions = {partition: tags[DATA_VERSION_TAG] for partition, tags in tags_by_partition.items()}
    whole = _latest(instance, key)
    if whole is not None and whole.partition is None:
        versions[""] = (whole.tags or {}).get(DATA_VERSION_TAG, "")
    return versions


def _latest(instance: dg.DagsterInstance, key: dg.AssetKey) -> dg.AssetMaterialization | None:
    """Read the latest materialization that the log has: the asset's own row still names that of a deleted run."""
    records = instance.fetch_materializations(key, limit=1).records
    return records[0].asset_materialization if records else None
