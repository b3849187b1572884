"""Sources in Dagster: landed, observed, or just shown; and the looks at them, by rows and by logs."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import dagster as dg
from pydantic import Field

from backfill_assets.engine.fill.observing import SourceLook, observe_sources
from backfill_assets.engine.project.environment_graph import sources_read
from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.graph import Graph
from backfill_assets.models.source import Source, WhenEmpty
from backfill_assets.orchestration.metadata import asset_key, pool, subject
from backfill_assets.orchestration.plan_work import Known
from backfill_assets.orchestration.released_runs import (
    MARK_TAG,
    PRIORITY_TAG,
    REASON_TAG,
    UNFINISHED,
    named,
    run_config,
    tried_lately,
)
from backfill_assets.orchestration.resources import SparkResource, StateResource, now
from backfill_assets.orchestration.steps import as_run_failure
from backfill_assets.orchestration.switches import GAP_FILL
from backfill_assets.snapshots.places import located
from backfill_assets.state.store import Store
from backfill_assets.warehouse.log.delta_log import head

OBSERVE_JOB = "observe"
_OBSERVE_OP = "observe_sources"
_LOOK = "observe"

Landing = Callable[[Any, str], object] | dg.AssetsDefinition
"""Lands a source: ``(spark, data_root)``, which does nothing when it is landed already; or an asset with its key."""


def landings_by_source(landings: Mapping[str, Landing], graph: Graph) -> Mapping[str, Landing]:
    """Say what lands each source: an asset lands every source whose key it has, for whichever it is declared.

    Raises:
        DeclarationError: there is no source of a name.
    """
    if unknown := sorted(landings.keys() - graph.sources.keys()):
        raise DeclarationError(
            found=f"landings: there is no source {', '.join(unknown)}",
            expected=f"some of {', '.join(sorted(graph.sources)) or 'none'}",
        )
    assets = [each for each in landings.values() if isinstance(each, dg.AssetsDefinition)]
    landed = {
        name: asset for asset in assets for name in graph.sources if asset_key(name) in asset.keys
    }
    return {**landed, **landings}


def source_asset(source: Source, landing: Landing | None, known: Known) -> Any:  # noqa: ANN401 - one of four kinds
    """Make the asset of a source: one that lands it if a landing is declared, else one that observes it.

    A landing that is an asset is taken as it is. A source that can't be observed, and that has no landing, is only shown.

    Raises:
        DeclarationError: the asset that is to land it has another key.
    """
    if isinstance(landing, dg.AssetsDefinition):
        _require_key(source, landing)
        return landing
    shown: dict[str, Any] = {
        "group_name": subject(source.name),
        "description": source.description or None,
    }
    owned = {"owners": [source.owner] if source.owner else None, "kinds": {"delta"}}
    if landing is not None:
        return _landed(source, landing, {**shown, **owned})
    if not source.observed:
        return dg.AssetSpec(asset_key(source.name), **shown, **owned)
    return _observable(source, {**shown, **owned}, known)


def _require_key(source: Source, landing: dg.AssetsDefinition) -> None:
    key = asset_key(source.name)
    if key not in landing.keys:
        names = ", ".join(sorted(found.to_user_string() for found in landing.keys))
        raise DeclarationError(
            found=f"landings: source '{source.name}' is to be landed by the asset {names}",
            expected=f"an asset with key={key.path}",
        )


def _landed(
    source: Source, landing: Callable[[Any, str], object], shown: Mapping[str, Any]
) -> dg.AssetsDefinition:
    @dg.asset(key=asset_key(source.name), pool=pool(source.name), **shown)
    def landed(
        context: dg.AssetExecutionContext,
        backfill_spark: SparkResource,
        backfill_state: StateResource,
    ) -> None:
        written = landing(backfill_spark.spark_session, backfill_state.data_root)
        context.log.info("landed" if written else "landed already, nothing to do")

    return cast("dg.AssetsDefinition", landed)


def _observable(source: Source, shown: Mapping[str, Any], known: Known) -> dg.AssetsDefinition:
    """Make the asset by which people observe a source: which of its cells changed since the last look.

    Not by `observable_source_asset`, which has no owners and fails `map_asset_specs` of a whole project.
    """
    key = asset_key(source.name)

    @dg.multi_observable_source_asset(
        name=key.to_python_identifier(), specs=[dg.AssetSpec(key, **shown)]
    )
    def looked(
        context: dg.AssetExecutionContext,
        backfill_spark: SparkResource,
        backfill_state: StateResource,
    ) -> dg.ObserveResult:
        with as_run_failure():
            read = sources_read(backfill_state.store, known())[source.name]
            looks = observe_sources(
                backfill_state.store,
                [read],
                backfill_state.data_root,
                lambda: backfill_spark.spark_session,
            )
        root = backfill_state.data_root
        metadata = _metadata(read, looks[0]) if looks else {"changed": _unmoved(read, root)}
        context.log.info("%s: %s", source.name, metadata["changed"])
        return dg.ObserveResult(asset_key=context.asset_key, metadata=metadata)

    return looked


class Sources(dg.Config):
    """Which sources are looked at."""

    sources: list[str] = Field(default=[], description="Their names; none: all that are observed.")


def observe_job(known: Known) -> dg.JobDefinition:
    """Make the job that observes sources, by their rows where their logs can't tell."""
    says = (
        "See which cells of the sources changed since the last look. "
        f"{GAP_FILL} asks for it where the log of a source can't tell."
    )

    @dg.op(name=_OBSERVE_OP, description=says)
    def looked(
        context: dg.OpExecutionContext,
        config: Sources,
        backfill_spark: SparkResource,
        backfill_state: StateResource,
    ) -> None:
        with as_run_failure():
            read = sources_read(backfill_state.store, known())
            sources = _named_sources(read, config.sources)
            looks = observe_sources(
                backfill_state.store,
                sources,
                backfill_state.data_root,
                lambda: backfill_spark.spark_session,
            )
        for look in looks:
            context.log.info("%s: %s", look.source, _words(read[look.source], look))
            context.log_event(_observation(read[look.source], look))
        for source in sources:
            if source.observed and source.name not in {look.source for look in looks}:
                unmoved = _unmoved(source, backfill_state.data_root)
                context.log.info("%s: %s", source.name, unmoved)

    @dg.job(name=OBSERVE_JOB, description=says, executor_def=dg.in_process_executor)
    def observe() -> None:
        looked()

    return observe


def _named_sources(read: Mapping[str, Source], names: Sequence[str]) -> list[Source]:
    unknown = [f"'{name}'" for name in names if name not in read]
    if unknown:
        raise RequestError(
            found=f"there is no source {', '.join(unknown)}",
            expected=f"some of {', '.join(sorted(read))}",
        )
    return [read[name] for name in names or read]


@dataclass(frozen=True, slots=True)
class SourcesObserved:
    """What a look at all sources by their logs came to.

    Attributes:
        requests: the run that looks at rows, where logs can't tell.
        events: what Dagster is told of each source that has moved.
        notes: what people should know, a sentence each.
        unseen: the sources whose rows cells wait for, and of which no look has seen any.
    """

    requests: tuple[dg.RunRequest, ...]
    events: tuple[dg.AssetObservation, ...]
    notes: tuple[str, ...]
    unseen: frozenset[str]


def look_by_logs(
    instance: dg.DagsterInstance, state: StateResource, known: Known
) -> SourcesObserved:
    """Look which cells of the sources got, lost or changed rows, without Spark.

    Args:
        instance: which runs look at rows right now, or have tried lately.
        state: where it is recorded.
        known: the declarations.
    """
    read = sources_read(state.store, known())
    looks = observe_sources(state.store, read.values(), state.data_root, None)
    unseen = _unseen(state.store, read.values())
    looked = {look.source for look in looks}
    return SourcesObserved(
        requests=looks_at_rows(instance, looks, OBSERVE_JOB),
        events=tuple(_observation(read[look.source], look) for look in looks if look.judged),
        notes=(
            *(f"{look.source}: {_words(read[look.source], look)}" for look in looks),
            *(_unseen_words(source, state.data_root, looked) for source in unseen),
        ),
        unseen=frozenset(source.name for source in unseen),
    )


def _unseen(store: Store, sources: Iterable[Source]) -> tuple[Source, ...]:
    """Give the sources whose rows cells wait for, and of which no look has seen any."""
    seen = store.sources.observed()
    return tuple(
        source
        for source in sources
        if source.observed and source.when_empty is WhenEmpty.WAIT and source.name not in seen
    )


def _unseen_words(source: Source, data_root: str, looked: Collection[str]) -> str:
    """Say what is waited for; a look that something came of has found a table, or could not read it and says so."""
    absent = "" if source.name in looked else _absent(source, data_root)
    why = absent or "a run looks at its rows first"
    return f"nothing that reads {source.name} is released before it has rows: {why}"


def _unmoved(source: Source, data_root: str) -> str:
    """Say what a look found of a source that has not moved since the last one, or was never there."""
    return _absent(source, data_root) or "nothing changed"


def _absent(source: Source, data_root: str) -> str:
    """Say where a source should have a table and has none; empty where it has one."""
    path = located(source.path, data_root)
    return f"it has no table at {path}" if head(path) < 0 else ""


def looks_at_rows(
    instance: dg.DagsterInstance, looks: Iterable[SourceLook], job: str
) -> tuple[dg.RunRequest, ...]:
    """Request the run that looks at rows, where logs can't tell; none where nothing is to be looked at.

    Args:
        instance: which runs look at rows right now, or have tried lately.
        looks: what a look by the logs came to.
        job: the one that observes sources, or the one of late data, which looks at all of them first.
    """
    heads = {look.source: look.head for look in looks if not look.judged}
    names = sorted(heads)
    # With the head of the last look: a run that looked has ended well, and what came since is another look.
    mark = ",".join(name if heads[name] is None else f"{name}@{heads[name]}" for name in names)
    tags = {REASON_TAG: _LOOK, MARK_TAG: mark, PRIORITY_TAG: "10"}
    if not names or _rests(instance, tags, job):
        return ()
    observing = {"ops": {_OBSERVE_OP: {"config": {"sources": names}}}}
    config = observing if job == OBSERVE_JOB else run_config(job, None)
    return (dg.RunRequest(job_name=job, run_config=config, tags=tags),)


def _rests(instance: dg.DagsterInstance, tags: Mapping[str, str], job: str) -> bool:
    """Whether a run of the job is at work right now, or these sources were tried not long ago."""
    at_work = dg.RunsFilter(job_name=job, statuses=UNFINISHED)
    if instance.get_runs(filters=at_work, limit=1):
        return True
    tried = tried_lately(instance, now(), (_LOOK,)).get(named(tags))
    return tried is not None and now() < tried.rests_until


def _observation(source: Source, look: SourceLook) -> dg.AssetObservation:
    return dg.AssetObservation(asset_key(look.source), metadata=_metadata(source, look))


def _metadata(source: Source, look: SourceLook) -> dict[str, Any]:
    metadata: dict[str, Any] = {"changed": _words(source, look)}
    return metadata if look.head is None else {**metadata, "delta_version": look.head}


def _words(source: Source, look: SourceLook) -> str:
    changed = ranges_text(source.cadence, look.changed) if look.changed else "nothing changed"
    return f"{changed}; {look.note}" if look.note else changed
