"""Schedules: the daily work of one cadence, through the same releases as the sensor's."""

import dagster as dg

from backfill_assets.execution.looker import Looker
from backfill_assets.execution.observing import observe_sources
from backfill_assets.execution.settled import Settled
from backfill_assets.intervals.grid import Unit
from backfill_assets.models.graph import Graph
from backfill_assets.models.source import Source
from backfill_assets.orchestration.plan_work import Known
from backfill_assets.orchestration.released_runs import RELEASE_JOB
from backfill_assets.orchestration.resources import StateResource, now
from backfill_assets.orchestration.tick import tick
from backfill_assets.planning.releasing import Offer, ReleaseKind
from backfill_assets.settings import read_settings

_NAMES = {
    Unit.HOUR: "hourly_work",
    Unit.DAY: "daily_work",
    Unit.WEEK: "weekly_work",
    Unit.MONTH: "monthly_work",
    Unit.WHOLE: "whole_tables",
}
_OFTEN = {Unit.HOUR: "*/5 * * * *"}
_ELSE = "*/15 * * * *"


def schedules(graph: Graph, known: Known) -> list[dg.ScheduleDefinition]:
    """Make a schedule for every cadence that some model lives on."""
    units = {model.cadence.unit for model in graph.models.values()}
    return [_schedule(unit, _read_on(graph, unit), known) for unit in _NAMES if unit in units]


def _read_on(graph: Graph, unit: Unit) -> list[Source]:
    """Name the sources that the models on a cadence read."""
    models = [model for model in graph.models.values() if model.cadence.unit is unit]
    names = dict.fromkeys(upstream.name for model in models for upstream in model.reads)
    return [graph.sources[name] for name in names if name in graph.sources]


def _schedule(unit: Unit, sources: list[Source], known: Known) -> dg.ScheduleDefinition:
    """Make the schedule of a cadence.

    It looks more often than its cells come: when a model's cells are due is the model's own cron's
    business, and what reads them is ready only after them. It looks at the sources, too, as far as
    their logs tell: if nobody did, a cell that waits for rows would wait for ever. A schedule has no
    cursor, so what is settled is kept as long as the process lives.
    """
    kept: dict[str, Settled] = {}

    @dg.schedule(
        name=_NAMES[unit],
        job_name=RELEASE_JOB,
        cron_schedule=_OFTEN.get(unit, _ELSE),
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=(
            "Fills the cells that came due since the last ready one, of models on this cadence; no "
            "history. For those who don't want the sensor, which does this and more."
        ),
    )
    def due(
        context: dg.ScheduleEvaluationContext, state: StateResource
    ) -> dg.SkipReason | list[dg.RunRequest]:
        settings = read_settings()
        looks = observe_sources(state.store, sources, state.data_root, None)
        looker = Looker(state.store, known(), state.data_root, now())
        found = tick(
            context.instance,
            looker,
            kept.get(settings.state, Settled()),
            batches=settings.cells_per_run,
            share=0,
            wanted=lambda one: _is_due(one, unit),
        )
        kept[settings.state] = found.settled
        if not found.requests:
            notes = (one.note for one in looks if one.note)
            return dg.SkipReason("; ".join(("nothing is due", *found.said, *notes)))
        return list(found.requests)

    return due


def _is_due(one: Offer, unit: Unit) -> bool:
    of_unit = one.model is not None and one.model.cadence.unit is unit
    return of_unit and one.kind is ReleaseKind.DAILY
