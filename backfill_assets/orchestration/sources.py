"""Sources in Dagster: landed, observed, or just shown; and the job and sensor that look at them."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import dagster as dg
from pydantic import Field

from backfill_assets.engine.fill.observing import SourceLook, observe_sources
from backfill_assets.engine.project.environment_graph import sources_read
from backfill_assets.intervals.text import ranges_text
from backfill_assets.models.source import Source
from backfill_assets.orchestration.metadata import asset_key, subject
from backfill_assets.orchestration.plan_work import Known
from backfill_assets.orchestration.pools import pool
from backfill_assets.orchestration.released_runs import (
    CELLS_TAG,
    PRIORITY_TAG,
    REASON_TAG,
    UNFINISHED,
    named,
    tried_lately,
)
from backfill_assets.orchestration.resources import SparkResource, StateResource, now
from backfill_assets.orchestration.steps import as_run_failure
from backfill_assets.orchestration.switches import SOURCE_SENSOR

OBSERVE_JOB = "observe"
_OBSERVE_OP = "observe_sources"
_LOOK = "observe"
_EVERY = 30

Landing = Callable[[Any, str], object]
"""Lands a source: ``(spark, data_root)``; does nothing when it is landed already."""


def source_asset(source: Source, landing: Landing | None, known: Known) -> Any:  # noqa: ANN401 - one of three kinds
    """Show a source: as an asset that lands it where a landing is declared, else as one to look at.

    A source that can't be observed, and that has no landing, is only shown.
    """
    shown: dict[str, Any] = {
        "group_name": subject(source.name),
        "description": source.description or None,
    }
    owned = {"owners": [source.owner] if source.owner else None, "kinds": {"delta"}}
    if landing is not None:
        return _landed(source, landing, {**shown, **owned})
    if not source.observed:
        return dg.AssetSpec(asset_key(source.name), **shown, **owned)
    return _observable(source, shown, known)


def _landed(source: Source, landing: Landing, shown: Mapping[str, Any]) -> dg.AssetsDefinition:
    @dg.asset(key=asset_key(source.name), pool=pool(source.name), **shown)
    def landed(
        context: dg.AssetExecutionContext, spark: SparkResource, state: StateResource
    ) -> None:
        written = landing(spark.spark_session, state.data_root)
        context.log.info("landed" if written else "landed already, nothing to do")

    return cast("dg.AssetsDefinition", landed)


def _observable(source: Source, shown: Mapping[str, Any], known: Known) -> Any:  # noqa: ANN401 - Dagster's own
    """Let people look at a source: which of its cells changed since the last look."""

    @dg.observable_source_asset(
        key=asset_key(source.name),
        tags={"dagster/kind/delta": ""},
        metadata={"owner": source.owner} if source.owner else {},
        **shown,
    )
    def looked(
        context: dg.AssetExecutionContext, spark: SparkResource, state: StateResource
    ) -> dg.ObserveResult:
        with as_run_failure():
            read = sources_read(state.store, known())[source.name]
            found = observe_sources(
                state.store, [read], state.data_root, lambda: spark.spark_session
            )
        for one in found:
            context.log.info("%s: %s", source.name, _words(read, one))
        return dg.ObserveResult(
            metadata=_metadata(read, found[0]) if found else {"changed": "nothing"}
        )

    return looked


class Sources(dg.Config):
    """Which sources are looked at."""

    sources: list[str] = Field(default=[], description="Their names; none: all that are observed.")


def observe_job(known: Known) -> dg.JobDefinition:
    """Make the job that looks at sources, rows and all."""
    says = "See which cells of the sources changed since the last look."

    @dg.op(name=_OBSERVE_OP, description=says)
    def looked(
        context: dg.OpExecutionContext, config: Sources, spark: SparkResource, state: StateResource
    ) -> None:
        with as_run_failure():
            read = sources_read(state.store, known())
            sources = [read[name] for name in config.sources or read]
            found = observe_sources(
                state.store, sources, state.data_root, lambda: spark.spark_session
            )
        for one in found:
            context.log.info("%s: %s", one.source, _words(read[one.source], one))
            context.log_event(_observation(read[one.source], one))

    @dg.job(name=OBSERVE_JOB, description=says, executor_def=dg.in_process_executor)
    def observe() -> None:
        looked()

    return observe


def source_sensor(known: Known) -> dg.SensorDefinition:
    """Look at the sources' logs; only where these can't tell, a run looks at the rows."""

    @dg.sensor(
        name=SOURCE_SENSOR,
        job_name=OBSERVE_JOB,
        minimum_interval_seconds=_EVERY,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=(
            "Sees which cells of the sources got, lost or changed rows, from the tables' own logs. "
            "What reads them needs work then, which the gap_fill_sensor releases."
        ),
    )
    def looked(context: dg.SensorEvaluationContext, state: StateResource) -> dg.SensorResult:
        read = sources_read(state.store, known())
        found = observe_sources(state.store, read.values(), state.data_root, None)
        for one in found:
            context.log.info("%s: %s", one.source, _words(read[one.source], one))
        unjudged = sorted(one.source for one in found if not one.judged)
        tags = {REASON_TAG: _LOOK, CELLS_TAG: ",".join(unjudged), PRIORITY_TAG: "10"}
        asked = bool(unjudged) and not _rests(context.instance, tags)
        request = [_request(unjudged, tags)] if asked else []
        return dg.SensorResult(
            run_requests=request,
            asset_events=[_observation(read[one.source], one) for one in found if one.judged],
            skip_reason=None if request else _skipped(found),
        )

    return looked


def _request(names: list[str], tags: Mapping[str, str]) -> dg.RunRequest:
    config = {"ops": {_OBSERVE_OP: {"config": {"sources": names}}}}
    return dg.RunRequest(run_config=config, tags=tags)


def _rests(instance: dg.DagsterInstance, tags: Mapping[str, str]) -> bool:
    """Whether a run looks at these sources right now, or did in vain not long ago."""
    at_work = dg.RunsFilter(job_name=OBSERVE_JOB, statuses=UNFINISHED)
    if instance.get_runs(filters=at_work, limit=1):
        return True
    tried = tried_lately(instance, now(), (_LOOK,)).get(named(tags))
    return tried is not None and now() < tried.rests_until


def _skipped(found: Iterable[SourceLook]) -> str:
    moved = sum(bool(one.changed) for one in found)
    sources = "source" if moved == 1 else "sources"
    return f"{moved} {sources} changed" if moved else "no source has moved"


def _observation(source: Source, one: SourceLook) -> dg.AssetObservation:
    return dg.AssetObservation(asset_key(one.source), metadata=_metadata(source, one))


def _metadata(source: Source, one: SourceLook) -> dict[str, Any]:
    said: dict[str, Any] = {"changed": _words(source, one)}
    return said if one.head is None else {**said, "delta_version": one.head}


def _words(source: Source, one: SourceLook) -> str:
    changed = ranges_text(source.cadence, one.changed) if one.changed else "nothing changed"
    return f"{changed}; {one.note}" if one.note else changed
