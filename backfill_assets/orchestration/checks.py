"""Checks: every audit once more as a stand-alone asset check over what is published, for CI."""

from collections.abc import Iterator

import dagster as dg

from backfill_assets.execution.audit_run import audit_published
from backfill_assets.execution.opening import open_run
from backfill_assets.models.audit import Severity
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.graph import Graph
from backfill_assets.models.model import Model
from backfill_assets.orchestration.metadata import asset_key
from backfill_assets.orchestration.reporting import check_result
from backfill_assets.orchestration.resources import SparkResource, StateResource, now
from backfill_assets.snapshots.environment import PROD

PUBLISHED = "published_"
"""Prefix of the stand-alone twins; the plain name belongs to the step that audits its batches."""


def published_checks(graph: Graph, model: Model) -> dg.AssetChecksDefinition:
    """Build the checks that audit a model's published cells without rebuilding them.

    In a run that also fills the model they say so at once: its step has audited what it committed.
    """
    key, step = asset_key(model.name), model.name.replace(".", "__")

    @dg.multi_asset_check(
        name=f"{step}__published",
        specs=[
            dg.AssetCheckSpec(
                f"{PUBLISHED}{audit.name}",
                asset=key,
                blocking=audit.severity is Severity.BLOCKING,
                description=f"{audit.name}, over everything that is published",
            )
            for audit in audits_of(model)
        ],
    )
    def published(
        context: dg.AssetCheckExecutionContext, spark: SparkResource, state: StateResource
    ) -> Iterator[dg.AssetCheckResult]:
        if _ran_here(context, step):
            yield from _audited_by_the_step(model, key)
            return
        run = open_run(
            state.store,
            graph,
            environment=PROD,
            spark=lambda: spark.spark_session,
            data_root=state.data_root,
            clock=now,
            run_id=context.run.run_id,
        )
        found = {one.audit: one for one in audit_published(run, model.name)}
        for audit in audits_of(model):
            results = [found[audit.name]] if audit.name in found else []
            yield check_result(key, f"{PUBLISHED}{audit.name}", results)

    return published


def _ran_here(context: dg.AssetCheckExecutionContext, step: str) -> bool:
    """Say whether the model's own step was part of this run: it comes before its checks."""
    return bool(context.instance.get_run_step_stats(context.run.run_id, [step]))


def _audited_by_the_step(model: Model, key: dg.AssetKey) -> Iterator[dg.AssetCheckResult]:
    for audit in audits_of(model):
        yield dg.AssetCheckResult(
            asset_key=key,
            check_name=f"{PUBLISHED}{audit.name}",
            passed=True,
            description="every batch of this run was audited before its commit",
        )
