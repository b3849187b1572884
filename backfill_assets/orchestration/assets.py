"""The asset factory: a model becomes an asset whose step fills the targeted cells."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, cast

import dagster as dg

from backfill_assets.engine.automatic.by_hand import Rebuilt, published_by_others, rebuild_by_hand
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.project.opening import open_run
from backfill_assets.engine.project.run_context import PublishedCells, RunContext
from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_words import audit_words
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.graph import Graph
from backfill_assets.models.model import Model
from backfill_assets.models.source import Source
from backfill_assets.models.upstream import Upstream
from backfill_assets.orchestration.launches import launch_of, targets, who_launched
from backfill_assets.orchestration.mappings import dependency, self_dependency
from backfill_assets.orchestration.metadata import (
    asset_key,
    check_name,
    description,
    pool,
    subject,
    table_metadata,
)
from backfill_assets.orchestration.partitions import partitions_of
from backfill_assets.orchestration.plan_step import serve_plan
from backfill_assets.orchestration.released_runs import PLAN_TAG, REASON_TAG
from backfill_assets.orchestration.reporting import Reporter
from backfill_assets.orchestration.resources import SparkResource, StateResource
from backfill_assets.orchestration.steps import (
    as_run_failure,
    failing_alone,
    finish_step,
    targeted_cells,
)
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.snapshots.snapshot import Snapshot


def model_asset(graph: Graph, snapshot: Snapshot) -> dg.AssetsDefinition:
    """Build the asset of a model."""
    model = snapshot.model

    @dg.asset(
        key=asset_key(model.name),
        deps=[_dependency(graph, model, upstream) for upstream in model.reads],
        partitions_def=partitions_of(model.cadence),
        backfill_policy=dg.BackfillPolicy.single_run(),
        code_version=snapshot.fingerprint.id[:12],
        group_name=subject(model.name),
        owners=[model.owner],
        kinds={"spark", "delta"},
        tags={**model.tags},
        description=description(model),
        metadata=table_metadata(graph, model),
        pool=pool(model.name),
        check_specs=[
            dg.AssetCheckSpec(
                check_name(audit.name),
                asset=asset_key(model.name),
                blocking=audit.severity is Severity.BLOCKING,
                description=f"{audit_words(audit)} Evaluated by each run that builds cells.",
            )
            for audit in audits_of(model)
        ],
        dagster_type=cast("dg.DagsterType", dg.Nothing),  # declared as a class, but it is a type
    )
    def filled(
        context: dg.AssetExecutionContext,
        backfill_spark: SparkResource,
        backfill_state: StateResource,
    ) -> Iterator[Any]:
        with as_run_failure():
            yield from fill(context, graph, model.name, spark=backfill_spark, state=backfill_state)

    return filled


def fill(
    context: dg.AssetExecutionContext,
    graph: Graph,
    name: str,
    *,
    spark: SparkResource,
    state: StateResource,
) -> Iterator[Any]:
    """Fill the targeted cells through the one write path, and report every one of them.

    Raises:
        dagster.Failure: cells that were asked for are still not ready; it says which and why.
        RequestError: the run names no partitions, the model is published with others, or the asset has another key.
    """
    _refuse_other_key(context.asset_key, name)
    if PLAN_TAG in context.run.tags:
        yield from serve_plan(context, graph, name, spark=spark, state=state)
        return
    who = str(who_launched(context.run))
    project = state.project(Loaded.of(graph), context.run.run_id, spark, who)
    run = open_run(
        project,
        PROD,
        root_id=launch_of(context.instance, context.run),
        published=PublishedCells.REBUILT,  # it counts in an environment that is not protected
    )
    model = run.graph.model(name)
    if name in run.changed:
        context.log.warning(
            "%s: its declaration has changed; filled with the snapshot that %s runs", name, PROD
        )
    _refuse_other_cells(graph.models[name], model)
    target = targeted_cells(context, model)
    by_hand = REASON_TAG not in context.run.tags
    again = published_by_others(run, name) & target if by_hand else IntervalSet.empty()
    reporter = Reporter(context, model, state.store, PROD)
    with failing_alone(reporter):
        if target - again:
            fill_cells(run, {name: target - again}, reporter.listen)
        if again:
            _rebuild(context, graph, run, reporter, again)
        reporter.untouched(target, run.work(name, run.view()).required)
        yield from finish_step(reporter, {})


def _refuse_other_key(key: dg.AssetKey, name: str) -> None:
    """Refuse to fill an asset whose key was replaced: its cells would be reported of one that does not exist.

    Raises:
        RequestError: the key is another one.
    """
    if key != asset_key(name):
        raise RequestError(
            found=f"the asset of {name} has the key {key.to_user_string()}, nothing was built: Dagster would be told of "
            f"{asset_key(name).to_user_string()}, for which the sensor asks, too",
            do="leave the keys of these assets as build_definitions makes them",
        )


def _refuse_other_cells(declared: Model, published: Model) -> None:
    """Refuse to read partitions as cells that are cut otherwise.

    Raises:
        RequestError: the declared cadence is not the one that is published.
    """
    if not declared.cadence.names_alike(published.cadence):
        raise RequestError(
            found=f"{declared.name} has other partitions than the cells that {PROD} publishes, nothing was built",
            do="`backfill plan` shows the change of its cadence; promote it first",
        )


def _rebuild(
    context: dg.AssetExecutionContext,
    graph: Graph,
    run: RunContext,
    reporter: Reporter,
    cells: IntervalSet,
) -> None:
    """Build published cells again in the workspace of the launch's plan, before its gate.

    Cells that this plan leaves alone are reported as any published cell is that needs no work.
    """
    name = reporter.model.name
    launched = targets(context, graph, run.graph)
    again = {model: asked & published_by_others(run, model) for model, asked in launched.items()}
    why = f"launched over published cells ({run.root_id})"
    heard = replace(run, project=replace(run.project, listener=reporter.rebuilding))
    done = rebuild_by_hand(heard, name, again, why, context.log.info)
    reporter.rebuilt(done, cells)
    if left_alone := cells - reporter.reported:
        context.log.warning(
            "%s: %s", ranges_text(reporter.model.cadence, left_alone), _why_not_built(done)
        )
        fill_cells(run, {name: left_alone}, reporter.listen)


def _why_not_built(done: Rebuilt) -> str:
    return (
        f"stays as it is published, and is not built again in plan {done.plan_id}: a cutoff keeps it, cells that "
        "it reads are not there, or another run has published it since the plan was made"
    )


def _dependency(graph: Graph, model: Model, upstream: Upstream) -> dg.AssetDep:
    key = asset_key(upstream.name)
    if upstream.name == model.name:
        return self_dependency(upstream, key)
    node = graph.node(upstream.name)
    if isinstance(node, Source):
        return dg.AssetDep(key)  # observed as a whole: it has no partitions
    return dependency(model.cadence, upstream, node.cadence, key)
