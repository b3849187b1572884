"""Schedules: the daily work of one cadence, and late data, through the same releases as the sensor's."""

from collections.abc import Callable
from functools import partial

import dagster as dg

from backfill_assets.engine.automatic.scan_memory import ScanMemory
from backfill_assets.engine.fill.observing import observe_sources
from backfill_assets.engine.project.environment_graph import sources_read
from backfill_assets.intervals.grid import Unit
from backfill_assets.models.graph import Graph
from backfill_assets.orchestration.plan_work import Known
from backfill_assets.orchestration.released_runs import LATE_JOB, RELEASE_JOB
from backfill_assets.orchestration.resources import StateResource
from backfill_assets.orchestration.sources import looks_at_rows
from backfill_assets.orchestration.switches import GAP_FILL, LATE_SCHEDULE, late_data_waits
from backfill_assets.orchestration.tick import tick
from backfill_assets.planning.queue.releasing import Offer, ReleaseKind
from backfill_assets.settings import read_settings

_NAMES = {
    Unit.HOUR: "hourly_work",
    Unit.DAY: "daily_work",
    Unit.WEEK: "weekly_work",
    Unit.MONTH: "monthly_work",
    Unit.WHOLE: "whole_tables",
}
_OFTEN = {_NAMES[Unit.HOUR]: "*/5 * * * *"}
_ELSE = "*/15 * * * *"
_INSTEAD = (
    f"Leave it off where the sensor {GAP_FILL} is on, which does this and more; it is for those who "
    "want schedules instead of the sensor."
)
_DAILY = (
    "Fills the cells that came due since the last ready one, of models on this cadence; no "
    f"history, and no late data, which is {LATE_SCHEDULE}'s. {_INSTEAD}"
)
_LATE = (
    "Builds again what late rows reach inside of late windows, in all models, and publishes it at once. "
    f"{_INSTEAD}"
)


def schedules(graph: Graph, known: Known) -> list[dg.ScheduleDefinition]:
    """Make a schedule for every cadence that some model lives on, and one for late data."""
    units = {model.cadence.unit for model in graph.models.values()}
    daily = [
        _schedule(
            known,
            name=name,
            job=RELEASE_JOB,
            sources=_read_on(graph, unit),
            wanted=partial(_is_due, unit),
        )
        for unit, name in _NAMES.items()
        if unit in units
    ]
    late = _schedule(
        known,
        name=LATE_SCHEDULE,
        job=LATE_JOB,
        sources=[name for name in graph.sources if graph.readers(name)],
        wanted=lambda offer: offer.kind is ReleaseKind.LATE,
    )
    return [*daily, late]


def _read_on(graph: Graph, unit: Unit) -> list[str]:
    """Name the sources that the models on a cadence read."""
    models = [model for model in graph.models.values() if model.cadence.unit is unit]
    names = dict.fromkeys(upstream.name for model in models for upstream in model.reads)
    return [name for name in names if name in graph.sources]


def _schedule(
    known: Known,
    *,
    name: str,
    job: str,
    sources: list[str],
    wanted: Callable[[Offer], bool],
) -> dg.ScheduleDefinition:
    """Make a schedule.

    It looks more often than its cells come: each model's own cron says when its cells are due, and
    its readers are ready only after them. It observes the sources, too, as far as their logs tell:
    otherwise a cell that waits for rows would wait for ever. Where these can't tell, the schedule of late
    data asks for its job, which looks at the rows first. A schedule has no
    cursor, so the memory of scans lasts as long as the process lives.

    Args:
        known: the declarations.
        name: its own.
        job: of its runs; a schedule has only one.
        sources: what it looks at, by name.
        wanted: which offers it releases.
    """
    kept: dict[str, ScanMemory] = {}

    @dg.schedule(
        name=name,
        job_name=job,
        cron_schedule=_OFTEN.get(name, _ELSE),
        default_status=dg.DefaultScheduleStatus.STOPPED,
        description=_LATE if job == LATE_JOB else _DAILY,
    )
    def due(
        context: dg.ScheduleEvaluationContext, backfill_state: StateResource
    ) -> dg.SkipReason | list[dg.RunRequest]:
        settings = read_settings()
        read = sources_read(backfill_state.store, known())
        looks = observe_sources(
            backfill_state.store,
            [read[source] for source in sources],
            backfill_state.data_root,
            None,
        )
        project = backfill_state.project(known(), name)
        ticked = tick(
            context,
            project,
            kept.get(settings.state, ScanMemory()),
            batches=settings.cells_per_run,
            share=0,
            wanted=wanted,
        )
        kept[settings.state] = ticked.memory
        waits = [] if job == LATE_JOB or not ticked.late else late_data_waits(context.instance)
        notes = (*ticked.notes, *waits, *(look.note for look in looks if look.note))
        for line in notes:
            context.log.info(line)
        requests = ticked.requests
        if job == LATE_JOB and not requests:
            requests = looks_at_rows(context.instance, looks, job)
        if not requests:
            return dg.SkipReason("; ".join(("nothing is due", *notes)))
        return list(requests)

    return due


def _is_due(unit: Unit, offer: Offer) -> bool:
    of_unit = offer.model is not None and offer.model.cadence.unit is unit
    return of_unit and offer.kind is ReleaseKind.DAILY
