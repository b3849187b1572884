"""Checks: every audit once more as a stand-alone asset check over what is published, for CI."""

from collections.abc import Iterator

import dagster as dg

from backfill_assets.engine.batch.audit_run import (
    audit_and_keep,
    audited_model,
    audited_on_record,
    refuse_nothing_published,
)
from backfill_assets.engine.project.opening import look
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_words import audit_words
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.graph import Graph
from backfill_assets.models.model import Model
from backfill_assets.orchestration.metadata import PUBLISHED, asset_key, check_name
from backfill_assets.orchestration.partitions import cells_of, partitions_of
from backfill_assets.orchestration.released_runs import CELLS_TAG, MODEL_TAG, cells_of_text
from backfill_assets.orchestration.reporting import check_result, not_promoted
from backfill_assets.orchestration.resources import SparkResource, StateResource
from backfill_assets.orchestration.steps import as_run_failure
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.loaded import Loaded

AUDITS_JOB = "audits"


def published_checks(graph: Graph, model: Model) -> dg.AssetChecksDefinition:
    """Build the checks that audit a model's published cells without rebuilding them.

    In a run that also fills the model they are about its cells, as the environment reads them: rows
    that a batch of today's snapshot has built and audited before its commit are not read again, all
    others are. A cell that is not published, as it waits for a plan, keeps them from passing. Where
    nothing of any model is published, a run that only audits fails, as the command does.
    """
    key = asset_key(model.name)

    @dg.multi_asset_check(
        name=f"{key.to_python_identifier()}__published",
        specs=[
            dg.AssetCheckSpec(
                f"{PUBLISHED}{check_name(audit.name)}",
                asset=key,
                blocking=audit.severity is Severity.BLOCKING,
                description=(
                    f"{audit_words(audit)} The same audit as `{audit.name}`, over everything that is "
                    f"published, without building it again. Evaluated by Dagster's runs of the asset and by "
                    f"the job `{AUDITS_JOB}`; grey until one of them has run."
                ),
            )
            for audit in audits_of(model)
        ],
        can_subset=True,
    )
    def published(
        context: dg.AssetCheckExecutionContext,
        backfill_spark: SparkResource,
        backfill_state: StateResource,
    ) -> Iterator[dg.AssetCheckResult]:
        with as_run_failure():
            yield from _published(context, graph, model, spark=backfill_spark, state=backfill_state)

    return published


def _published(
    context: dg.AssetCheckExecutionContext,
    graph: Graph,
    model: Model,
    *,
    spark: SparkResource,
    state: StateResource,
) -> Iterator[dg.AssetCheckResult]:
    run = look(state.project(Loaded.of(graph), context.run.run_id, spark), PROD)
    step = asset_key(model.name).to_python_identifier()
    target = _targeted(context.run, model) if _ran_here(context, step) else None
    judged = run.graph.model(model.name)
    if target is None:
        judged = audited_model(run, model.name)
        refuse_nothing_published(run, run.graph.models)
        results, lacking = audit_and_keep(run, model.name), ""
    else:
        results = audited_on_record(run, model.name, target)
        work = run.work(model.name, run.view())
        remaining = (target & work.required) - work.ready
        lacking = ranges_text(model.cadence, remaining) if remaining else ""
    promoted = {audit.name for audit in audits_of(judged)}
    for audit in audits_of(model):
        key = dg.AssetCheckKey(asset_key(model.name), f"{PUBLISHED}{check_name(audit.name)}")
        if key not in context.selected_asset_check_keys:
            continue
        if audit.name not in promoted:
            yield not_promoted(key.asset_key, key.name, PROD)
            continue
        evaluated = [each for each in results if each.audit == audit.name]
        result = check_result(key.asset_key, key.name, evaluated)
        yield _unless_published(result, lacking, audited=bool(evaluated))


def _ran_here(context: dg.AssetCheckExecutionContext, step: str) -> bool:
    """Say whether the model's own step was part of this run: it comes before its checks."""
    return bool(context.instance.get_run_step_stats(context.run.run_id, [step]))


def _targeted(run: dg.DagsterRun, model: Model) -> IntervalSet | None:
    """Read from a run's tags which cells of a model it fills; None where they name none."""
    if partitions_of(model.cadence) is None:
        return cells_of(model.cadence, [])
    if CELLS_TAG in run.tags and run.tags.get(MODEL_TAG) == model.name:
        return cells_of_text(model.cadence, run.tags[CELLS_TAG])
    bounds = [run.tags[tag] for tag in _PARTITION_TAGS if tag in run.tags]
    hull = cells_of(model.cadence, bounds).hull() if bounds else None
    return None if hull is None else IntervalSet.of([hull])


def _unless_published(
    result: dg.AssetCheckResult, lacking: str, *, audited: bool
) -> dg.AssetCheckResult:
    """Let a check pass only if all of its cells are published and were audited."""
    if not result.passed or (audited and not lacking):
        return result
    missing = f"not published: {lacking}" if lacking else "no published cell was audited"
    return dg.AssetCheckResult(
        asset_key=result.asset_key,
        check_name=result.check_name,
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
        description=f"{missing}; of what is published: {result.description}",
        metadata=result.metadata,
    )


_PARTITION_TAGS = (
    "dagster/partition",
    "dagster/asset_partition_range_start",
    "dagster/asset_partition_range_end",
)
