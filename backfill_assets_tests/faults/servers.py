"""Lives that hang on a server, PostgreSQL's or Spark Connect's, which is killed and started again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.warehouse.spark.connect_server import ConnectServer
from backfill_assets_tests.e2e.polling import until
from backfill_assets_tests.faults.bases import Bases
from backfill_assets_tests.faults.hits import AtMoment
from backfill_assets_tests.faults.processes import start
from backfill_assets_tests.faults.trials import LIFE, Outcome
from backfill_assets_tests.postgres import NoPostgresError, postgres_server
from backfill_assets_tests.spark import free_port, small_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from backfill_assets_tests.faults.hits import Hit
    from backfill_assets_tests.faults.ledger import Ledger
    from backfill_assets_tests.faults.trials import Bench
    from backfill_assets_tests.postgres import Server


@dataclass(frozen=True)
class ServerDies:
    """While a command runs, the server that it needs is killed, and started again soon.

    Attributes:
        name: of the server.
        kill: kills it.
        restart: starts it again.
        seconds: after the start of the command.
        away: how long nobody answers, in seconds.
    """

    name: str
    kill: Callable[[], object]
    restart: Callable[[], object]
    seconds: float
    away: float

    def __call__(
        self, ledger: Ledger, words: tuple[str, ...], engine: Mapping[str, str]
    ) -> str | None:
        victim = start(ledger, words, **engine)
        if not victim.lives_for(self.seconds):
            return None
        self.kill()
        time.sleep(self.away)
        self.restart()
        victim.wait()
        return f"kill of {self.name} after {self.seconds:.1f} s"


def on_postgres(bench: Bench, name: str) -> Outcome:
    """Let a ledger live whose state lies in PostgreSQL, which is killed, as are its clients."""
    title = f"PostgreSQL {name}"
    chance = random.Random(title)  # noqa: S311 - that it can be drawn again is the point
    with ExitStack() as running:
        try:
            server = running.enter_context(postgres_server())
        except NoPostgresError as error:
            return Outcome(f"life {title}", hits=[f"LEFT OUT: {error}"[:300]])
        url = server.create("faults")

        def kill() -> None:
            for pid in _listening(url.rpartition(":")[2].partition("/")[0]):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

        def dies() -> Hit:
            seconds, away = chance.uniform(0.5, 12), chance.uniform(0, 4)
            return ServerDies("PostgreSQL", kill, lambda: _again(server), seconds, away)

        return bench.life(_mixed(chance, dies), title, state_url=url)


def _again(server: Server) -> None:
    """Start it again, as a service manager would: until nothing of the dead one is in its way."""

    def started() -> bool:
        with suppress(NoPostgresError):
            server.start()
            return True
        return False

    until(started, seconds=60, what="PostgreSQL is up again")


def on_connect(bench: Bench, name: str) -> Outcome:
    """Let a ledger live on a Spark Connect server, which is killed, as are its clients."""
    title = f"Connect {name}"
    chance = random.Random(title)  # noqa: S311 - that it can be drawn again is the point
    server = ConnectServer(bench.folder / "connect-server", free_port())
    settings = small_settings(bench.folder / "connect-warehouse")

    def restart() -> None:
        server.start(settings, os.environ)

    def kill() -> None:
        pid = server.process()
        if pid is not None:
            os.kill(pid, signal.SIGKILL)
            while server.process() is not None:
                time.sleep(0.05)

    def dies() -> Hit:
        return ServerDies(
            "the Connect server", kill, restart, chance.uniform(2, 25), chance.uniform(0, 5)
        )

    restart()
    try:
        bases = Bases(bench.bases.folder, {"BACKFILL_SPARK_REMOTE": server.url})
        return replace(bench, bases=bases).life(_mixed(chance, dies), title)
    finally:
        kill()


def _mixed(chance: random.Random, dies: Callable[[], Hit]) -> Iterator[Sequence[Hit]]:
    for _ in LIFE:
        yield [dies(), AtMoment(chance.randint(1, 25)), dies(), AtMoment(chance.randint(1, 25))]


def _listening(port: str) -> list[int]:
    """Find PostgreSQL's own process by its port, and those below it."""
    found = subprocess.run(
        ["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(None, 2) for line in found.splitlines()]
    heads = {int(pid) for pid, _, said in rows if "postgres" in said and f"port={port}" in said}
    return [int(pid) for pid, parent, _ in rows if int(pid) in heads or int(parent) in heads]
