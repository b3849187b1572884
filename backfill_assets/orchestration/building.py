"""Build the Dagster definitions of a project from its models, sources and consumers."""

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg

from backfill_assets.models.consumer import Consumer
from backfill_assets.models.graph import Graph, build_graph
from backfill_assets.models.model import Model
from backfill_assets.models.source import Source
from backfill_assets.orchestration.assets import model_asset
from backfill_assets.orchestration.checks import AUDITS_JOB, published_checks
from backfill_assets.orchestration.jobs import plan_jobs, sensor_jobs
from backfill_assets.orchestration.metadata import naming_what_is_refused
from backfill_assets.orchestration.resources import SparkResource, StateResource
from backfill_assets.orchestration.schedules import schedules
from backfill_assets.orchestration.sensors import gap_fill_sensor, once
from backfill_assets.orchestration.sources import Landing, landings_by_source, source_asset
from backfill_assets.snapshots.snapshot import snapshots_of


def build_definitions(
    *,
    models: Iterable[Model],
    sources: Iterable[Source],
    consumers: Iterable[Consumer] = (),
    landings: Mapping[str, Landing] | None = None,
) -> dg.Definitions:
    """Turn declarations into everything that Dagster runs and shows.

    Args:
        models: every model.
        sources: every source that they read.
        consumers: whom the jobs ask before a change of what they read, and tell afterwards.
        landings: by source name, the function or asset that lands it; a source without one is only observed.

    Raises:
        BackfillAssetsError: a declaration is wrong; the message says which, and what to write instead.
    """
    graph = build_graph(models, sources, consumers)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", dg.BetaWarning
        )  # the release of Dagster is pinned and tested
        return _definitions(graph, landings or {})


def _definitions(graph: Graph, landings: Mapping[str, Landing]) -> dg.Definitions:
    snapshots, by_source = snapshots_of(graph), landings_by_source(landings, graph)
    loaded_once = once(graph)
    assets: list[Any] = []
    for name in (*graph.order, *graph.sources):
        with naming_what_is_refused(name):
            assets.append(
                model_asset(graph, snapshots[name])
                if name in graph.models
                else source_asset(graph.sources[name], by_source.get(name), loaded_once)
            )
    checks = [published_checks(graph, graph.models[name]) for name in graph.order]
    return dg.Definitions(
        assets=assets,
        asset_checks=checks,
        jobs=[
            dg.define_asset_job(
                AUDITS_JOB,
                selection=dg.AssetSelection.checks(*checks),
                description="Audit everything that is published, without rebuilding it.",
            ),
            *plan_jobs(loaded_once),
            *sensor_jobs(loaded_once),
        ],
        sensors=[gap_fill_sensor(loaded_once)],
        schedules=schedules(graph, loaded_once),
        resources={
            "backfill_spark": SparkResource(spark_config={}),
            "backfill_state": StateResource(),
        },
        executor=dg.in_process_executor,
    )
