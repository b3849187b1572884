"""Read by name while others publish: `python -m benchmarks.names`.

Twelve models are promoted and taken back again and again, and some of the processes that do so are killed and
begun anew, while three engines read all twelve by name. Counted are errors, names that are not whole, and polls
that see two generations. Besides, what the catalogue costs: a fill and a promotion with and without it, in turn.
Iceberg has no runtime for Spark 4.2, so Spark reads in an environment of its own, made by pip.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import venv
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import pyarrow as pa
import typer
from deltalake import write_deltalake

from benchmarks.commands import BACKFILL, RESULTS
from benchmarks.names_catalog import MODELS_AT_ONCE, landed
from benchmarks.process import measured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.process import Measured

_DAYS, _BACK, _LATE = 40, 5.0, 1.0  # days of each model; seconds back; seconds that count as late
_STOP = "stop"
_LOOK = 0.02  # seconds
_LOCATION = "SELECT metadata_location FROM iceberg_tables WHERE table_name = 'm00'"
_ROUNDS = 3
_SPARK = ("pyspark==4.1.*", "pyiceberg")
_PACKAGES = (
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0,org.xerial:sqlite-jdbc:3.50.3.0"
)
_AS_OF = ("pyiceberg", "spark")
"""Readers that ask for an instant; the other one reads what each name stands for now."""


@dataclass
class Reader:
    """A process that polls."""

    engine: str
    process: subprocess.Popen[bytes]
    log: Path
    polls: list[dict[str, Any]] = field(default_factory=list)

    def stop(self) -> None:
        """Let it end, and read what it saw."""
        self.log.with_name(_STOP).touch()
        self.process.wait()
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line[:1] == "{"]
        self.polls = [line for line in lines if "began" in line]


class Visible(threading.Thread):
    """Looks every few milliseconds whether the names have moved: the state records when a publication began to.

    Attributes:
        moves: unix times, each at most a look after the transaction that moved them.
    """

    def __init__(self, state: Path) -> None:
        super().__init__(daemon=True)
        self.moves: list[float] = []
        self.stopped = threading.Event()
        self._state = state

    def run(self) -> None:
        """Look until it is told to stop."""
        before = None
        with closing(sqlite3.connect(f"file:{self._state}?mode=ro", uri=True)) as connection:
            while not self.stopped.wait(_LOOK):
                now = connection.execute(_LOCATION).fetchone()
                if before is not None and now != before:
                    self.moves.append(time.time())  # noqa: TID251 - compared with the polls
                before = now


def main(
    publications: Annotated[int, typer.Option(help="How many promotions and rollbacks.")] = 50,
    kills: Annotated[int, typer.Option(help="How many processes are killed.")] = 50,
    polls: Annotated[int, typer.Option(help="How many names are read at least.")] = 10_000,
    spark: Annotated[bool, typer.Option(help="Whether Spark reads.")] = True,  # noqa: FBT002
) -> None:
    """Publish while others read, and count what they saw."""
    folder = RESULTS / "names"
    shutil.rmtree(folder, ignore_errors=True)
    env = _filled(folder)
    _backfill(env, "iceberg", "enable")
    engines = ["pyiceberg", "duckdb", *(["spark"] if spark else [])]
    readers = [_reader(engine, folder) for engine in engines]
    visible = Visible(folder / "state.db")
    visible.start()
    drawn, left = random.Random(1), kills  # noqa: S311 - the same sequence each time
    began = time.monotonic()
    for number in range(publications // 2):
        share = -(-left // (publications - 2 * number))
        left -= _there_and_back(env, drawn, min(left, 2 * share))
    while sum(map(_count, readers)) < polls:
        time.sleep(1)
    for reader in readers:
        reader.stop()
    took = time.monotonic() - began
    visible.stopped.set()
    visible.join()
    moves = [(at, 2 - number % 2) for number, at in enumerate(visible.moves)]
    print(f"{len(moves)} publications, {kills - left} kills, {took:.0f} s")  # noqa: T201
    for reader in readers:
        print(_told(reader, moves))  # noqa: T201
    print(_costs(folder.with_name("names-cost")))  # noqa: T201


def _filled(folder: Path) -> dict[str, str]:
    env = _landed(folder)
    _backfill(env, "run")
    return env


def _landed(folder: Path) -> dict[str, str]:
    days = [date(2024, 1, 1) + timedelta(days=number) for number in range(_DAYS)]
    write_deltalake(str(folder / landed.path), pa.table({"ds": days, "id": [*range(_DAYS)]}))
    return {
        "BACKFILL_CATALOG": "benchmarks.names_catalog",
        "BACKFILL_DATA_DIR": str(folder),
        "BACKFILL_LEASE_SECONDS": "2",
        "BENCH_GENERATION": "1",
    }


def _backfill(env: Mapping[str, str], *words: str) -> str:
    return measured([*BACKFILL, *words], env, ends=(0, 2)).output


def _there_and_back(env: Mapping[str, str], drawn: random.Random, kills: int) -> int:
    """Promote the second generation and take it back; give how many processes were killed."""
    second = {**env, "BENCH_GENERATION": "2"}
    plan = json.loads(_backfill(second, "plan", "--json"))["plan_id"]
    _backfill(second, "apply", plan)
    killed = 0
    for verb, at_most in (("promote", -(-kills // 2)), ("rollback", kills // 2)):
        done = False
        for _ in range(at_most):
            if done := _killed(second, drawn, verb, plan):
                break
            killed += 1
        if not done:
            _backfill(second, verb, plan, "--yes")
    return killed


def _killed(env: Mapping[str, str], drawn: random.Random, verb: str, plan: str) -> bool:
    """Kill a process at some moment; whether it had ended before."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*BACKFILL, verb, plan, "--yes"],
        env={**os.environ, **env},  # noqa: TID251 - passed on
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        return process.wait(timeout=drawn.uniform(0.8, 3.0)) == 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return False


def _reader(engine: str, folder: Path) -> Reader:
    python, env = [sys.executable], dict(os.environ)  # noqa: TID251 - passed on
    if engine == "spark":
        home = RESULTS / "names-spark"
        if not (home / "bin" / "spark-submit").exists():
            venv.create(home, with_pip=True)
            subprocess.run([home / "bin" / "pip", "install", "-q", *_SPARK], check=True)  # noqa: S603
        python = [str(home / "bin" / "spark-submit"), "--packages", _PACKAGES]
        env |= {"PYSPARK_PYTHON": str(home / "bin" / "python")}
        env.pop("SPARK_HOME", None)
        env["PATH"] = f"{home / 'bin'}:{env['PATH']}"
    log = folder / f"{engine}.log"
    # Not from here: modules beside a script come before those of Python, and there is a `queue` here.
    script = shutil.copy(Path(__file__).with_name("names_reader.py"), folder / "reading_names.py")
    process = subprocess.Popen(  # noqa: S603
        [*python, script, engine, str(folder / "state.db"), str(_BACK), str(folder / _STOP)],
        env=env,
        stdout=log.open("w"),
        stderr=(folder / f"{engine}.err").open("w"),
    )
    while "ready" not in log.read_text():
        if process.poll() is not None:
            raise RuntimeError((folder / f"{engine}.err").read_text()[-2000:])
        time.sleep(0.2)
    return Reader(engine, process, log)


def _count(reader: Reader) -> int:
    return MODELS_AT_ONCE * reader.log.read_text().count('"began"')


def _told(reader: Reader, moves: list[tuple[float, int]]) -> str:
    errors = [poll for poll in reader.polls if poll["error"]]
    whole = [poll for poll in reader.polls if not poll["error"]]
    back = _BACK if reader.engine in _AS_OF else 0.0
    mixed = [poll for poll in whole if len(poll["seen"]) > 1]
    unexplained = [poll for poll in mixed if back or not _straddles(poll, moves)]
    late = [poll for poll in whole if _is_late(poll, moves, back)]
    first = f"; first error: {errors[0]['error']}" if errors else ""
    return (
        f"{reader.engine}: {len(reader.polls)} polls of {MODELS_AT_ONCE} names, {len(errors)} errors, {len(mixed)} with two "
        f"generations, {len(unexplained)} of them without a publication meanwhile, {len(late)} later than "
        f"{_LATE:.0f} s{first}"
    )


def _costs(folder: Path) -> str:
    """Fill, promote and take back in turn without and with a catalogue; CPU seconds of whole processes."""
    took: dict[tuple[str, bool], list[float]] = {}
    for _, named in product(range(_ROUNDS), (False, True)):
        shutil.rmtree(folder, ignore_errors=True)
        env = _landed(folder)
        second = {**env, "BENCH_GENERATION": "2"}
        if named:
            _backfill(env, "iceberg", "enable")
        steps: dict[str, Measured] = {"fill": measured([*BACKFILL, "run"], env)}
        plan = json.loads(_backfill(second, "plan", "--json"))["plan_id"]
        _backfill(second, "apply", plan)
        for verb in ("promote", "rollback"):
            steps[verb] = measured([*BACKFILL, verb, plan, "--yes"], second)
        for step, done in steps.items():
            took.setdefault((step, named), []).append(done.cpu)
    return "; ".join(
        f"{step}: {median(took[step, True]):.2f} CPU s with a catalogue, {median(took[step, False]):.2f} without"
        for step in ("fill", "promote", "rollback")
    )


def _straddles(poll: Mapping[str, Any], moves: list[tuple[float, int]]) -> bool:
    return any(poll["began"] - 0.1 <= at <= poll["ended"] for at, _ in moves)


def _is_late(poll: Mapping[str, Any], moves: list[tuple[float, int]], back: float) -> bool:
    """Whether a poll that began a second after a publication saw what was there before it."""
    since = poll["began"] - back - _LATE
    known = [(at, generation) for at, generation in moves if at <= since]
    later = any(since < at <= poll["ended"] for at, _ in moves)
    expected = known[-1][1] if known else 1
    return not later and poll["seen"] != [expected]


if __name__ == "__main__":
    typer.run(main)
