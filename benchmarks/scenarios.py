"""The scenarios: the same 540 days of campaign performance, by us and without us.

Each runs in processes and folders of its own, cold, as a person would start it; only the ad events
are made once and shared.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from backfill_assets.pipelines.marketing.landing import landings
from benchmarks.commands import BACKFILL
from benchmarks.process import Measured, measured
from benchmarks.recorded import batch_spans
from benchmarks.startup import start_up

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL = "marketing.campaign_performance"
KEY = "marketing/campaign_performance"
FIRST, LAST, DAYS = "2024-01-01", "2025-06-23", 540
_SOURCE = "sources/marketing/ad_events"
_CATALOG = "benchmarks.catalog"
_RUN_LINE = "run "


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one scenario took.

    Attributes:
        wall: seconds of the whole process.
        work: seconds in which data was computed and written: for us from the start of the first
            batch to the end of the last; otherwise without the start of Spark.
        cpu: CPU seconds of the whole process, its JVM included.
        peak_mb: the largest resident memory, Python and JVM together.
        processes: how many processes the machine started meanwhile.
        steps: seconds by step; of batches side by side, the sum over batches.
        note: what a reader must know of it.
    """

    wall: float
    work: float
    cpu: float
    peak_mb: float
    processes: int
    steps: Mapping[str, float] = field(default_factory=dict[str, float])
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bench:
    """Where scenarios run, and on how many events."""

    folder: Path
    events: int

    @property
    def source(self) -> Path:
        """The ad events, made once per number of events."""
        return self.folder / f"events-{self.events}"

    def land(self) -> float:
        """Make the ad events, unless they are there; give the seconds."""
        (table,) = landings(rows=self.events)
        if table.is_landed(self.source):
            return 0.0
        return _job("land", str(self.source), str(self.events)).wall

    def noop(self) -> Outcome:
        """Compute all days and write nothing."""
        return _outcome(_job("noop", str(self.source / _SOURCE), ""), "computed, written nowhere")

    def one_shot(self) -> Outcome:
        """Write all days with one job, in the layout of our tables and in a Spark as ours."""
        return self._one_shot("delta", "one Delta commit, same columns and partitions, no audit")

    def one_shot_without_us(self) -> Outcome:
        """Do the same in a Spark with Java's own options."""
        return self._one_shot("plain", "the same; Java with its own options")

    def _one_shot(self, what: str, note: str) -> Outcome:
        target = self._fresh("one-shot")
        return _outcome(_job(what, str(self.source / _SOURCE), str(target / "table")), note)

    def backfill(self) -> Outcome:
        """Fill all days through `backfill run`."""
        return self._backfill("backfill", {}, FIRST, LAST)

    def in_batches(self, days: int, at_once: int) -> Outcome:
        """Fill all days through `backfill run`, in batches of so many days."""
        env = {
            "BACKFILL_CATALOG": _CATALOG,
            "BACKFILL_MAX_BATCHES": str(at_once),
            "BENCHMARK_BATCH_DAYS": str(days),
            "BENCHMARK_AT_ONCE": str(at_once),
        }
        return self._backfill("in-batches", env, FIRST, LAST)

    def day_by_day(self, days: int) -> Outcome:
        """Fill some days in batches of one, and extrapolate to all of them."""
        last = str(_plus_days(days - 1))
        env = {"BACKFILL_CATALOG": _CATALOG, "BENCHMARK_BATCH_DAYS": "1", "BENCHMARK_AT_ONCE": "1"}
        some = self._backfill("day-by-day", env, FIRST, last)
        ends = sorted(
            end for _, end in batch_spans(self.folder / "runs" / "day-by-day" / "state.db")
        )
        each = median(late - early for early, late in pairwise(ends))
        # The first days warm the JVM up; only what a later day takes is multiplied.
        work = some.work + each * (DAYS - days)
        return replace(
            some,
            wall=some.wall - some.work + work,
            work=work,
            note=f"EXTRAPOLATED wall and work from {days} days, one batch a day, one at a time "
            f"(measured: {some.work:.1f} s of work, the median day {each:.2f} s); the rest is as "
            "measured",
        )

    def nothing_to_do(self) -> Outcome:
        """Run the finished backfill again: everything is ready."""
        run = measured([*BACKFILL, "run", "--select", MODEL, "--json"], self._env("backfill"))
        return Outcome(
            run.wall, 0.0, run.cpu, run.peak_mb, run.processes, note="all cells are ready already"
        )

    def start_up(self) -> dict[str, float]:
        """Ask the finished backfill for its status and for a plan: nothing is left to do."""
        return start_up(self._env("backfill"), ["--select", MODEL, "--start", FIRST, "--end", LAST])

    def dagster(self) -> Outcome:
        """Fill all days through `dagster asset materialize`: one run, an event for every day."""
        home = self._fresh("dagster")
        (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
        (home / "sources").symlink_to((self.source / "sources").resolve())
        command = [_beside("dagster"), "asset", "materialize", "--select", KEY]
        command += ["--partition-range", f"{FIRST}...{LAST}"]
        command += ["-m", "backfill_assets.orchestration.definitions"]
        run = measured(command, {**self._env("dagster"), "DAGSTER_HOME": str(home)})
        spans = batch_spans(home / "state.db")
        return self._ours(run, spans, {}, "through `dagster asset materialize`, events included")

    def _backfill(self, name: str, env: Mapping[str, str], first: str, last: str) -> Outcome:
        folder = self._fresh(name)
        (folder / "sources").symlink_to((self.source / "sources").resolve())
        command = [*BACKFILL, "run", "--select", MODEL, "--start", first, "--end", last, "--json"]
        run = measured(command, {**self._env(name), **env})
        told = json.loads(run.output)["models"][MODEL]
        spans = batch_spans(folder / "state.db")
        return self._ours(run, spans, told["seconds"], "through `backfill run`")

    def _ours(
        self,
        run: Measured,
        spans: list[tuple[float, float]],
        seconds: Mapping[str, float],
        note: str,
    ) -> Outcome:
        first, last = min(start for start, _ in spans), max(end for _, end in spans)
        work, begins = last - first, first - run.began
        planned = run.said(_RUN_LINE)
        steps = {"until the first batch": begins}
        if planned < begins:
            steps = {"start-up, planning": planned, "start of Spark": begins - planned}
        steps |= seconds
        steps["after the last batch"] = run.wall - begins - work
        return Outcome(
            run.wall,
            work,
            run.cpu,
            run.peak_mb,
            run.processes,
            steps,
            f"{note}, {len(spans)} batches",
        )

    def _fresh(self, name: str) -> Path:
        folder = self.folder / "runs" / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def _env(self, name: str) -> dict[str, str]:
        return {
            "BACKFILL_DATA_DIR": str((self.folder / "runs" / name).resolve()),
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "COLUMNS": "200",  # a line that is looked for must not be folded
        }


def _job(*arguments: str) -> Measured:
    return measured([sys.executable, "-m", "benchmarks.job", *arguments], {})


def _outcome(run: Measured, note: str) -> Outcome:
    said = json.loads(run.output.splitlines()[-1])
    begins = said["spark_start"]
    steps = {"start of Spark": begins, "work": said["work"]}
    return Outcome(run.wall, said["work"], run.cpu, run.peak_mb, run.processes, steps, note)


def _beside(command: str) -> str:
    return str(Path(sys.executable).with_name(command))


def _plus_days(days: int) -> date:
    return date.fromisoformat(FIRST) + timedelta(days=days)
