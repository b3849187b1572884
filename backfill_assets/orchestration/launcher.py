"""Launch runs as Dagster does, but notice when a run's process is gone.

Dagster's code server calls a run failed whose process has died. When both die together, with a machine or
a container, no process is left to do so: the run would hold its cells and its model's pool for ever. The
launcher is named in `dagster.yaml`; Dagster's monitor asks it about each run that has started.
"""

import json
import os
from pathlib import Path

import dagster as dg

from backfill_assets.orchestration.private_names import (
    GRPC_INFO_TAG,
    CheckRunHealthResult,
    WorkerStatus,
    instance_of,
)

_HERE = ("127.0.0.1", "localhost")
_SLACK = 5.0
"""Seconds by which a process may seem younger than the run that it carries: two clocks are read."""


class WatchedRunLauncher(dg.DefaultRunLauncher):
    """Dagster's launcher, which can also check whether the process of a run on this machine exists."""

    @property
    def supports_check_run_worker_health(self) -> bool:
        """Let the monitor check runs."""
        return True

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Call a run failed only if its process was on this machine and is not any more."""
        seen = _is_here(run) and Path("/proc/self/stat").exists()
        instance = instance_of(self)
        pid = _pid_of(instance, run) if seen else None
        if pid is None:
            return CheckRunHealthResult(WorkerStatus.RUNNING, "its process can't be seen from here")
        record = instance.get_run_record_by_id(run.run_id)
        began, since = _began(pid), record.start_time if record else None
        if began is None or (since is not None and began > since + _SLACK):
            return CheckRunHealthResult(WorkerStatus.FAILED, f"its process, {pid}, is gone")
        return CheckRunHealthResult(WorkerStatus.RUNNING)


def _is_here(run: dg.DagsterRun) -> bool:
    """Whether the code server that started a run was one of this machine."""
    server = json.loads(run.tags.get(GRPC_INFO_TAG, "{}"))
    return bool(server.get("socket")) or server.get("host") in _HERE


def _pid_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> int | None:
    """Read the process id that a run has logged."""
    for entry in instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        pid = entry.get_dagster_event().engine_event_data.metadata.get("pid")
        if pid is not None:
            return int(str(pid.value))
    return None


def _began(pid: int) -> float | None:
    """When a process began, in epoch seconds; None if there is none, or if it is a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        booted = Path("/proc/stat").read_text().partition("btime ")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
    if fields[0] in ("Z", "X"):
        return None
    return float(booted) + int(fields[19]) / os.sysconf("SC_CLK_TCK")
