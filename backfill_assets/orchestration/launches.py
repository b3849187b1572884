"""Launches: one request of a person in Dagster, over any number of runs."""

from collections.abc import Collection, Iterator, Mapping, Sequence

import dagster as dg

from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.graph import Graph
from backfill_assets.orchestration.identity import principal_of
from backfill_assets.orchestration.metadata import asset_key
from backfill_assets.orchestration.partitions import cells_of, keys_of_run
from backfill_assets.orchestration.released_runs import REASON_TAG
from backfill_assets.snapshots.person import AUTOMATION, Person, unverified_person, verified_person

_BACKFILL_TAGS = ("dagster/root_backfill_id", "dagster/backfill")
_THROUGH = {
    "dagster/from_automation_condition": "an automation condition",
    "dagster/schedule_name": "a schedule",
    "dagster/sensor_name": "a sensor",
}
"""By tag, what has asked for a run; the first one counts, for a sensor evaluates the conditions."""


def launch_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """Give the id that a launch shares with everything that re-executes it.

    A run that is re-executed after its backfill has ended no longer names the backfill; its root
    run does. A backfill that the instance does not know yet, as that of `dagster job backfill`, is no launch:
    what its other runs target is not known.
    """
    for related in _runs(instance, run):
        for tag in _BACKFILL_TAGS:
            if tag in related.tags and instance.get_backfill(related.tags[tag]):
                return related.tags[tag]
    return run.root_run_id or run.run_id


def who_launched(run: dg.DagsterRun, typed: str = "") -> Person:
    """Say who launched a run.

    Only what the webserver attests is known; a tag can be typed as a form can, so both are claims. So is that
    automation of the project's own asked for it.

    Args:
        run: the run.
        typed: the name that its form holds.
    """
    if REASON_TAG in run.tags:
        return Person(AUTOMATION)
    principal = principal_of(run)
    if principal is not None:
        return verified_person(principal, typed)
    # A run that no code location was asked for is executed where it was asked: `dagster asset materialize`, `dagster job execute`.
    by_hand = "a command of Dagster" if run.remote_job_origin is None else "the launchpad"
    through = next((words for tag, words in _THROUGH.items() if tag in run.tags), by_hand)
    return unverified_person(through, typed or run.tags.get("user", ""))


def targets(context: dg.AssetExecutionContext, declared: Graph, published: Graph) -> CellsByModel:
    """Give the cells that a launch targets, by model: of its whole backfill, or of its one run.

    Without models whose declared partitions are cut otherwise than the cells that are published: their keys name
    other cells, and their own step refuses them.

    Args:
        context: of a step of the launch.
        declared: the models as Dagster knows them.
        published: the models as the environment runs them.
    """
    keys = _of_backfill(context)
    if keys is None:
        keys = dict.fromkeys(_selected(context), keys_of_run(context))
    return CellsByModel(
        {
            name: cells_of(published.models[name].cadence, list(keys[asset_key(name)]))
            for name in published.order
            if asset_key(name) in keys and _same_keys(name, declared, published)
        }
    )


def _same_keys(name: str, declared: Graph, published: Graph) -> bool:
    model = declared.models.get(name)
    return model is not None and model.cadence.names_alike(published.models[name].cadence)


def _selected(context: dg.AssetExecutionContext) -> Collection[dg.AssetKey]:
    return context.run.asset_selection or context.job_def.asset_layer.selected_asset_keys


def _of_backfill(context: dg.AssetExecutionContext) -> Mapping[dg.AssetKey, Sequence[str]] | None:
    """Read the targets of the backfill that this run, or its root run, belongs to; that of a job has its run's models."""
    for run in _runs(context.instance, context.run):
        tag = run.tags.get("dagster/backfill")
        backfill = context.instance.get_backfill(tag) if tag else None
        if backfill is None:
            continue
        if not backfill.is_asset_backfill:
            return dict.fromkeys(_selected(context), backfill.partition_names or ())
        subset = backfill.get_asset_backfill_data(context.repository_def.asset_graph).target_subset
        partitioned = {
            key: list(partitions.get_partition_keys())
            for key, partitions in subset.partitions_subsets_by_asset_key.items()
        }
        return {**partitioned, **{key: [] for key in subset.non_partitioned_asset_keys}}
    return None


def _runs(instance: dg.DagsterInstance, run: dg.DagsterRun) -> Iterator[dg.DagsterRun]:
    yield run
    if run.root_run_id and (root := instance.get_run_by_id(run.root_run_id)):
        yield root
