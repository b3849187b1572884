"""Whether anything works on the queue: the switches of sensors and schedules, and the daemon's heartbeat."""

from collections.abc import Iterator

import dagster as dg

GAP_FILL, LATE_SCHEDULE = "gap_fill_sensor", "late_data"


def is_on(instance: dg.DagsterInstance, name: str) -> bool:
    """Whether a person has switched a sensor or a schedule on."""
    states = instance.all_instigator_state()
    return any(state.name == name and state.status.value == "RUNNING" for state in states)


def late_data_waits(instance: dg.DagsterInstance) -> Iterator[str]:
    """Say that cells wait for late data, if neither the schedule nor the sensor that brings it in is on."""
    if not any(is_on(instance, name) for name in (LATE_SCHEDULE, GAP_FILL)):
        yield (
            f"cells wait for late data, which the schedules that fill missing cells do not bring in: switch on the "
            f"schedule {LATE_SCHEDULE} in the UI (Automation), or run `backfill run`"
        )


_DAEMONS = ("SENSOR", "QUEUED_RUN_COORDINATOR")


def lacking(instance: dg.DagsterInstance) -> Iterator[str]:
    """Say what keeps the queue from running, a sentence for each cause."""
    if not is_on(instance, GAP_FILL):
        yield (
            f"the sensor {GAP_FILL} is off: switch it on in the UI (Automation); until then nothing in the queue "
            "is released"
        )
    statuses = instance.get_daemon_statuses(daemon_types=_DAEMONS)
    dead = [name for name in _DAEMONS if not statuses[name].healthy]
    if dead:
        yield (
            "no daemon works on this instance (DAGSTER_HOME): start `dagster dev` or "
            "`dagster-daemon run`; the plan waits in the queue until then"
        )
