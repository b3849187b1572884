"""The queue: 540 days released by the sensor to Dagster's run queue, beside one process.

Webserver, daemon, run queue and run workers are real. Each case starts with an empty state, once the
source has been looked at; the clock runs from the sensor's switch to the end of the last run. `python
-m benchmarks.queue` measures it alone, every case beside `backfill run` with the same batches.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import sys
import threading
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.warehouse.connect_server import ConnectServer
from backfill_assets.warehouse.session import SparkSettings
from backfill_assets_tests.e2e.polling import until
from backfill_assets_tests.e2e.server import CHECKOUT, Project, serving
from benchmarks.process import processes_of
from benchmarks.scenarios import DAYS, FIRST, LAST, MODEL, Bench, batch_spans

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from backfill_assets_tests.e2e.graphql import Client
    from benchmarks.scenarios import Outcome

RESULTS = Path(__file__).with_name("results")
GOALS = {"queue with Connect / one process": "≤ 2", "CPU s of a run, Connect": "≤ 6"}
CASES = ((30, 2), (30, 4), (90, 2), (90, 4))
"""Days per batch, and how many batches may be in flight."""

_WORKSPACE = """
load_from:
  - python_module:
      module_name: benchmarks.definitions
      attribute: defs
      location_name: toy
"""
_LONG = 3_600
_EVERY = 0.25
_TIMING = re.compile(r"(compute|audit|commit|state) ([0-9.]+)")


@dataclass(frozen=True, slots=True)
class Queued:
    """What filling all days through the queue took.

    Attributes:
        wall: seconds from the sensor's switch to the end of the last run.
        cpu: CPU seconds of everything that worked on it, Spark included.
        run_cpu: CPU seconds of one run's own process, on average; a JVM of its own included.
        peak_mb: the largest resident memory of all processes together.
        runs: how many runs it took.
        batches: how many batches.
        steps: seconds by step; of batches side by side, the sum over batches.
    """

    wall: float
    cpu: float
    run_cpu: float
    peak_mb: float
    runs: int
    batches: int
    steps: Mapping[str, float] = field(default_factory=dict[str, float])


def queues(
    bench: Bench, cases: tuple[tuple[int, int], ...] = CASES
) -> dict[str, dict[str, Queued | Outcome]]:
    """Measure every case: one process, a Spark per run, and one Connect server for all runs."""
    return {
        f"batches of {days}, {limit} at once": {
            "one process": bench.in_batches(days, limit),
            "queue, own Spark": _through_queue(bench, days, limit),
            "queue, Connect": _connected(bench, days, limit),
        }
        for days, limit in cases
    }


def queue_ratios(told: Mapping[str, Mapping[str, Queued | Outcome]]) -> dict[str, float]:
    """Compare each case with the same batches in one process."""
    found: dict[str, float] = {}
    for case, ways in told.items():
        alone, connected = ways["one process"].wall, ways["queue, Connect"]
        for way, one in ways.items():
            if isinstance(one, Queued):
                found[f"{way} / one process, {case}"] = one.wall / alone
        if isinstance(connected, Queued):
            found[f"CPU s of a run, Connect, {case}"] = connected.run_cpu
    return found


def queue_lines(told: Mapping[str, Mapping[str, Queued | Outcome]]) -> list[str]:
    """Write what each case took."""
    lines: list[str] = []
    for case, ways in told.items():
        lines.append(f"{DAYS} days in {case}:")
        for way, one in ways.items():
            steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in one.steps.items())
            runs = (
                f", {one.runs} runs, {one.run_cpu:.1f} CPU s each"
                if isinstance(one, Queued)
                else ""
            )
            lines += [
                f"  {way:<18} {one.wall:6.1f} s, {one.cpu:6.1f} CPU s, {one.peak_mb:6,.0f} MB{runs}",
                f"  {'':<18} {steps} s",
            ]
    return lines


def _connected(bench: Bench, days: int, limit: int) -> Queued:
    server = ConnectServer((bench.folder / "runs" / "connect").resolve(), port=15_202)
    jars = Path(os.environ.get("BACKFILL_JARS_DIR", ".spark-jars"))  # noqa: TID251 - an entrance
    settings = SparkSettings(jars_dir=jars, warehouse=str(server.folder / "warehouse"))
    server.start(settings, os.environ)  # noqa: TID251 - passed on
    try:
        return _through_queue(bench, days, limit, server)
    finally:
        server.stop()


def _through_queue(
    bench: Bench, days: int, limit: int, server: ConnectServer | None = None
) -> Queued:
    project = _project(bench, days, limit, server)
    with serving(project) as client, ExitStack() as watched:
        client.start_sensor("source_sensor")
        until(lambda: _is_observed(project), seconds=_LONG, what="the source was looked at")
        leaders = [_leader(project), *([pid] if server and (pid := server.process()) else [])]
        used = watched.enter_context(_watching(leaders))
        began = time.monotonic()
        client.start_sensor("gap_fill_sensor")
        until(lambda: _ready(project) == DAYS, seconds=_LONG, what="all days are ready")
        runs = [run["runId"] for run in client.tagged(reason="backfill")]
        ended = [client.run_ended(run) for run in runs]
        wall = time.monotonic() - began
        watched.close()
        if set(ended) != {"SUCCESS"}:
            raise ValueError(ended)
        return _told(project, client, runs, used, wall)


def _told(project: Project, client: Client, runs: list[str], used: _Used, wall: float) -> Queued:
    built = batch_spans(Path(project.data_root, "state.db"))
    first, last = min(start for start, _ in built), max(end for _, end in built)
    steps = {"until the first batch": first - used.began, "work": last - first}
    for run in runs:
        for step, seconds in _timings(client.events(run)):
            steps[step] = steps.get(step, 0.0) + seconds
    steps["after the last batch"] = wall - (last - used.began)
    workers = [used.of(client.pid_of(run)) for run in runs]
    return Queued(
        wall=wall,
        cpu=used.total,
        run_cpu=sum(workers) / len(workers),
        peak_mb=used.peak_mb,
        runs=len(runs),
        batches=len(built),
        steps=steps,
    )


def _timings(events: list[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    for event in events:
        if " committed as delta_version " in event.get("message", ""):
            for step, seconds in _TIMING.findall(event["message"]):
                yield step, float(seconds)


def _project(bench: Bench, days: int, limit: int, server: ConnectServer | None) -> Project:
    folder = bench.folder / "runs" / "queue"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    (folder / "home").mkdir()
    (folder / "data" / "sources").symlink_to((bench.source / "sources").resolve())
    instance = (CHECKOUT / "dagster.yaml").read_text()
    limited = re.sub(r"max_concurrent_runs: \d+", f"max_concurrent_runs: {limit}", instance)
    (folder / "home" / "dagster.yaml").write_text(limited)
    (folder / "workspace.yaml").write_text(_WORKSPACE)
    settings = {
        "BENCHMARK_BATCH_DAYS": str(days),
        "BENCHMARK_AT_ONCE": str(limit),
        "BACKFILL_MAX_BATCHES": str(limit),
        "BACKFILL_SPARK_MEMORY": "4g",
        "BACKFILL_LEASE_SECONDS": "60",
        **({"SPARK_REMOTE": server.url} if server else {}),
    }
    return Project(folder.resolve(), "benchmarks.catalog", "benchmarks.definitions", settings)


def _is_observed(project: Project) -> bool:
    return bool(_asked(project, "SELECT count(*) FROM observed_sources"))


def _ready(project: Project) -> int:
    return _asked(project, "SELECT count(*) FROM ready_records WHERE valid_to IS NULL")


def _asked(project: Project, query: str) -> int:
    state = Path(project.data_root, "state.db")
    if not state.exists():
        return 0
    with closing(sqlite3.connect(f"file:{state}?mode=ro", uri=True)) as db:
        try:
            return int(db.execute(query).fetchone()[0])
        except sqlite3.OperationalError:  # its tables are just being made
            return 0


def _leader(project: Project) -> int:
    """Find the process that started webserver and daemon."""
    words = str(project.folder / "workspace.yaml")
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            said = (folder / "cmdline").read_text().split("\0")
            session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
        except OSError:  # it has ended meanwhile
            continue
        if words in said and session == int(folder.name):
            return session
    raise ProcessLookupError(words)


@dataclass(slots=True)
class _Used:
    """What the processes of some sessions have used, since it was looked at first."""

    began: float
    before: dict[int, float] = field(default_factory=dict[int, float])
    cpu: dict[int, float] = field(default_factory=dict[int, float])
    parents: dict[int, int] = field(default_factory=dict[int, int])
    peak_mb: float = 0.0

    @property
    def total(self) -> float:
        """CPU seconds altogether."""
        return sum(self.cpu.values()) - sum(self.before.values())

    def of(self, pid: int) -> float:
        """CPU seconds of a process and those below it."""
        below = [one for one, parent in self.parents.items() if parent == pid and one != pid]
        return self.cpu.get(pid, 0.0) + sum(map(self.of, below))


@contextmanager
def _watching(leaders: list[int]) -> Iterator[_Used]:
    used, over = _Used(began=time.time()), threading.Event()  # noqa: TID251 - beside records

    def look() -> None:
        resident = 0.0
        for leader in leaders:
            for one in processes_of(leader):
                used.cpu[one.pid] = max(used.cpu.get(one.pid, 0.0), one.cpu)
                used.parents[one.pid] = one.parent
                resident += one.resident_mb
        used.peak_mb = max(used.peak_mb, resident)

    def watch() -> None:
        while not over.wait(_EVERY):
            look()

    look()
    used.before = dict(used.cpu)
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield used
    finally:
        over.set()
        thread.join()


def main(
    events: Annotated[int, typer.Option(help="how many ad events")] = 10_000_000,
    days: Annotated[int, typer.Option(help="days per batch; 0 for every case")] = 0,
    limit: Annotated[int, typer.Option(help="batches at once")] = 2,
    folder: Annotated[Path, typer.Option(help="where it works")] = RESULTS,
) -> None:
    """Measure the queue alone."""
    bench = Bench(folder.resolve(), events)
    bench.land()
    told = queues(bench, ((days, limit),) if days else CASES)
    typer.echo(f"{events:,} ad events, {FIRST}..{LAST}, {MODEL}")
    for line in queue_lines(told):
        typer.echo(line)
    for name, ratio in queue_ratios(told).items():
        typer.echo(f"{name}: {ratio:.2f}")


if __name__ == "__main__":
    sys.exit(typer.run(main))
