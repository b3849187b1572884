"""One case of the queue: 540 days released by the sensor to Dagster's run queue, from switch to end.

Webserver, daemon, run queue and run workers are real. It starts with an empty state; the clock
runs from the sensor's switch to the end of the last run.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets.warehouse.spark.connect_server import ConnectServer
from backfill_assets.warehouse.spark.session import SparkSettings
from backfill_assets_tests.e2e.polling import until
from backfill_assets_tests.e2e.server import Project, laid_out, serving
from benchmarks.recorded import at_work, batch_spans, number
from benchmarks.scenarios import DAYS
from benchmarks.sessions import leader_of, watching

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from benchmarks.scenarios import Bench
    from benchmarks.sessions import Used

_LONG = 3_600
_TIMING = re.compile(r"(compute|audit|commit|state) ([0-9.]+)")
_TOLD = re.compile(r"told Dagster of \d+ cells in ([0-9.]+) s")
_READY = "SELECT count(*) FROM ready_records WHERE valid_to IS NULL"
_ON_THE_WAY = (
    ("until the run is asked for", "AssetMaterializationPlannedEvent"),
    ("announced", "RunEnqueuedEvent"),
    ("queued", "RunStartingEvent"),
    ("process started", "RunStartEvent"),
)
"""What a run goes through before its first batch: each ends with the first event of its kind."""


@dataclass(frozen=True, slots=True)
class Queued:
    """What filling all days through the queue took.

    Attributes:
        wall: seconds from the sensor's switch to the end of the last run.
        cpu: CPU seconds of everything that worked on it, Spark included.
        run_cpu: CPU seconds of one run's own process, on average; a JVM of its own included.
        server_cpu: CPU seconds of the Connect server, if there was one.
        peak_mb: the largest resident memory of all processes together.
        runs: how many runs it took.
        batches: how many batches.
        steps: seconds by step; of batches side by side, the sum over batches.
    """

    wall: float
    cpu: float
    run_cpu: float
    server_cpu: float
    peak_mb: float
    runs: int
    batches: int
    steps: Mapping[str, float] = field(default_factory=dict[str, float])


def connected(bench: Bench, days: int, limit: int) -> Queued:
    """Fill all days through the queue, all runs on one new Connect server."""
    server = ConnectServer((bench.folder / "runs" / "connect").resolve(), port=15_202)
    jars = Path(os.environ.get("BACKFILL_JARS_DIR", ".spark-jars"))  # noqa: TID251 - an entrance
    settings = SparkSettings(jars_dir=jars, warehouse=str(server.folder / "warehouse"))
    server.start(settings, os.environ)  # noqa: TID251 - passed on
    try:
        return through_queue(bench, days, limit, server)
    finally:
        server.stop()


def through_queue(
    bench: Bench, days: int, limit: int, server: ConnectServer | None = None
) -> Queued:
    """Fill all days through the queue.

    Args:
        bench: where, and how many events.
        days: how many a batch has.
        limit: how many batches, and runs, there may be at once.
        server: the Connect server of all runs; none, a Spark in each.

    Raises:
        ValueError: a run did not succeed.
    """
    project = _project(bench, days, limit, server)
    state = Path(project.data_root, "state.db")
    spark = server.process() if server else None
    with serving(project) as client, ExitStack() as watched:
        leaders = [leader_of(str(project.folder / "workspace.yaml"))]
        used = watched.enter_context(watching([*leaders, spark] if spark else leaders))
        began = time.monotonic()
        client.start_sensor("gap_fill_sensor")
        until(lambda: number(state, _READY) == DAYS, seconds=_LONG, what="all days are ready")
        runs = [run["runId"] for run in client.tagged(reason="backfill")]
        ended = [client.run_ended(run) for run in runs]
        wall = time.monotonic() - began
        watched.close()
        if set(ended) != {"SUCCESS"}:
            raise ValueError(ended)
        workers = [used.of(client.pid_of(run)) for run in runs]
        spans = batch_spans(state)
        return Queued(
            wall=wall,
            cpu=used.total,
            run_cpu=sum(workers) / len(workers),
            server_cpu=used.since(spark) if spark else 0.0,
            peak_mb=used.peak_mb,
            runs=len(runs),
            batches=len(spans),
            steps=_steps([client.events(run) for run in runs], spans, used, wall),
        )


def _steps(
    runs: list[list[dict[str, Any]]], spans: list[tuple[float, float]], used: Used, wall: float
) -> dict[str, float]:
    first, last = min(start for start, _ in spans), max(end for _, end in spans)
    earliest = min(runs, key=lambda events: float(events[0]["timestamp"]))
    steps = dict(_on_the_way(earliest, used.began, first))
    steps["work"] = last - first
    for events in runs:
        for step, seconds in _timings(events):
            steps[step] = steps.get(step, 0.0) + seconds
    steps["no batch at work"] = last - first - at_work(spans)
    steps["after the last batch"] = wall - (last - used.began)
    return steps


def _on_the_way(
    events: list[dict[str, Any]], began: float, first: float
) -> Iterator[tuple[str, float]]:
    """Split what came before the first batch by what the run went through."""
    at = {event["__typename"]: float(event["timestamp"]) / 1e3 for event in reversed(events)}
    ends = [began, *(at[kind] for _, kind in _ON_THE_WAY), first]
    names = [*(name for name, _ in _ON_THE_WAY), "until its first batch"]
    for name, (start, end) in zip(names, pairwise(ends), strict=True):
        yield name, end - start


def _timings(events: list[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    for event in events:
        message = event.get("message") or ""
        if " committed as delta_version " in message:
            for step, seconds in _TIMING.findall(message):
                yield step, float(seconds)
        for seconds in _TOLD.findall(message):
            yield "events", float(seconds)


def _project(bench: Bench, days: int, limit: int, server: ConnectServer | None) -> Project:
    folder = (bench.folder / "runs" / "queue").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "sources").symlink_to((bench.source / "sources").resolve())
    settings = {
        "BENCHMARK_BATCH_DAYS": str(days),
        "BENCHMARK_AT_ONCE": str(limit),
        "BACKFILL_MAX_BATCHES": str(limit),
        "BACKFILL_SPARK_MEMORY": "4g",
        "BACKFILL_LEASE_SECONDS": "60",
        "PYTHONDONTWRITEBYTECODE": "",  # processes start from compiled modules, as installed ones do
        **({"SPARK_REMOTE": server.url} if server else {}),
    }
    return laid_out(
        folder,
        catalog="benchmarks.catalog",
        definitions="benchmarks.definitions",
        settings=settings,
        at_once=limit,
    )
