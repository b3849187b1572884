"""Whether anything works on the queue: the sensor's switch, and the daemon's heartbeat."""

from collections.abc import Iterator

import dagster as dg

from backfill_assets.orchestration.switches import GAP_FILL, is_on

_DAEMONS = ("SENSOR", "QUEUED_RUN_COORDINATOR")


def lacking(instance: dg.DagsterInstance) -> Iterator[str]:
    """Say what is missing, a sentence each; nothing where the queue is worked on."""
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
