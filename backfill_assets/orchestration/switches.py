"""Whether anything works on the queue: the switches of sensors and schedules, and the daemon's heartbeat."""

from collections.abc import Collection, Iterator

import dagster as dg

from backfill_assets.engine.automatic.scan_memory import ScanMemory
from backfill_assets.models.automation import Automation
from backfill_assets.models.graph import Graph
from backfill_assets.models.model import Model
from backfill_assets.snapshots.environment import PROD

GAP_FILL, SOURCE_SENSOR, LATE_SCHEDULE = "gap_fill_sensor", "source_sensor", "late_data"


def is_on(instance: dg.DagsterInstance, name: str) -> bool:
    """Whether a person has switched a sensor or a schedule on."""
    states = instance.all_instigator_state()
    return any(state.name == name and state.status.value == "RUNNING" for state in states)


def late_data_waits(instance: dg.DagsterInstance) -> Iterator[str]:
    """Say that cells wait for late data, if nothing that is switched on brings it in."""
    if not any(is_on(instance, name) for name in (LATE_SCHEDULE, GAP_FILL)):
        yield (
            f"cells wait for late data, which no schedule of a cadence brings in: switch on the schedule "
            f"{LATE_SCHEDULE} in the UI (Automation), or run `backfill run`"
        )


def unobserved_sources(
    instance: dg.DagsterInstance, graph: Graph, memory: ScanMemory, seen: Collection[str]
) -> Iterator[str]:
    """Say which models may wait for rows that have come, if nothing observes their sources.

    Args:
        instance: whose sensors count.
        graph: the declarations.
        memory: what the last scan has left of each model of prod.
        seen: the sources that were looked at before.
    """
    waiting = [model.name for model in graph.models.values() if _waits(graph, model, memory, seen)]
    if waiting and not is_on(instance, SOURCE_SENSOR):
        yield (
            f"cells of {', '.join(waiting)} wait, and nothing looks whether rows have come to their "
            f"sources: switch on {SOURCE_SENSOR} in the UI (Automation)"
        )


def _waits(graph: Graph, model: Model, memory: ScanMemory, seen: Collection[str]) -> bool:
    reads = [graph.sources[up.name] for up in model.reads if up.name in graph.sources]
    observed = [read.name for read in reads if read.observed]
    name = f"{PROD}::{model.name}"
    unseen = not memory.is_done(name) and not {*observed} <= {*seen}
    return bool(observed) and model.automated is Automation.ON and (memory.is_left(name) or unseen)


_DAEMONS = ("SENSOR", "QUEUED_RUN_COORDINATOR")


def lacking(instance: dg.DagsterInstance) -> Iterator[str]:
    """Say what keeps the queue from being worked on, a sentence each."""
    if not is_on(instance, GAP_FILL):
        yield (
            f"the sensor {GAP_FILL} is off: switch it on in the UI (Automation), or nothing of this "
            "is released"
        )
    statuses = instance.get_daemon_statuses(daemon_types=_DAEMONS)
    dead = [name for name in _DAEMONS if not statuses[name].healthy]
    if dead:
        yield (
            "no daemon works on this instance (DAGSTER_HOME): start `dagster dev` or "
            "`dagster-daemon run`; the plan waits in the queue until then"
        )
