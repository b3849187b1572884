"""The sensor that looks at the sources, and releases what is ready to the run queue."""

from collections.abc import Collection
from functools import cache, partial

import dagster as dg

from backfill_assets.engine.automatic.scan_memory import ScanMemory
from backfill_assets.models.graph import Graph
from backfill_assets.orchestration.follow_ups import FOLLOW_UP_JOBS, follow_ups
from backfill_assets.orchestration.plan_work import Known
from backfill_assets.orchestration.private_names import JobsSensor
from backfill_assets.orchestration.released_runs import RELEASE_JOB, RELEASED_JOBS
from backfill_assets.orchestration.resources import StateResource, now
from backfill_assets.orchestration.sources import OBSERVE_JOB, look_by_logs
from backfill_assets.orchestration.switches import GAP_FILL
from backfill_assets.orchestration.tick import tick
from backfill_assets.planning.queue.releasing import Offer
from backfill_assets.settings import read_settings
from backfill_assets.snapshots.loaded import Loaded

_EVERY = 30
_IDLE = "nothing is ready to be released"
_SAYS = (
    "The one switch that starts everything: it looks what has come to the sources, fills what is missing, "
    "builds late cells again, tries again what failed in passing, and builds the plans in the queue; daily "
    "work first, within the limits. It reads logs and recorded state only; runs do the work. The schedules "
    "can stay off. Off until it is switched on."
)


def once(graph: Graph) -> Known:
    """Give a function that fingerprints the declarations, at its first call only."""

    @cache
    def known() -> Loaded:
        return Loaded.of(graph)

    return known


def gap_fill_sensor(known: Known) -> dg.SensorDefinition:
    """Make the sensor that looks at the sources, and releases what is ready: gaps, late cells, queued plans."""

    def released(
        context: dg.SensorEvaluationContext, backfill_state: StateResource
    ) -> dg.SensorResult:
        settings = read_settings()
        looked = look_by_logs(context.instance, backfill_state, known)
        ticked = tick(
            context,
            backfill_state.project(known(), GAP_FILL),
            ScanMemory.read(context.cursor),
            batches=settings.cells_per_run,
            share=settings.backfill_share,
            wanted=partial(_reads_none, looked.unseen),
        )
        notes = (*looked.notes, *ticked.notes)
        for line in notes:
            context.log.info(line)
        requests = [
            *looked.requests,
            *ticked.requests,
            *follow_ups(context.instance, backfill_state.store, now()),
        ]
        return dg.SensorResult(
            run_requests=requests,
            asset_events=looked.events,
            skip_reason=None if requests else "; ".join((_IDLE, *notes)),
            cursor=ticked.memory.text(),
        )

    # Dagster's own sensor takes one name, or several jobs; its job over all assets is only a name.
    return JobsSensor(
        released,
        [RELEASE_JOB, *RELEASED_JOBS, OBSERVE_JOB, *FOLLOW_UP_JOBS],
        name=GAP_FILL,
        minimum_interval_seconds=_EVERY,
        default_status=dg.DefaultSensorStatus.STOPPED,
        description=_SAYS,
    )


def _reads_none(sources: Collection[str], offer: Offer) -> bool:
    """Whether an offer's model reads none of these sources."""
    read = () if offer.model is None else offer.model.reads
    return not any(upstream.name in sources for upstream in read)
