"""Dagster over a ledger as services: code server, daemon and webserver, each started anew when it dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets_tests.e2e.graphql import Client
from backfill_assets_tests.e2e.polling import until
from backfill_assets_tests.spark import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets_tests.faults.ledger import Ledger

BIN = Path(sys.executable).parent
CODE, DAEMON, WEB = "code server", "daemon", "webserver"
_BOOT = 300
_DEFINITIONS = '''"""The ledger in Dagster."""

from backfill_assets import build_definitions
from kept.catalog import MODELS, SOURCES

defs = build_definitions(models=MODELS, sources=SOURCES)
'''
_WORKSPACE = """
load_from:
  - grpc_server: {{host: 127.0.0.1, port: {port}, location_name: ledger}}
"""
_START_SENSOR = """
mutation($sensor: SensorSelector!) { startSensor(sensorSelector: $sensor) {
  __typename ... on PythonError { message } } }"""

_STARTED = """
{ runsOrError(filter: {statuses: [STARTED]}) { ... on Runs { results { runId } } } }"""
_CANCEL = """
mutation($id: String!) { terminateRun(runId: $id) { __typename } }"""


@dataclass
class Services:
    """What a supervisor keeps running.

    Attributes:
        ledger: whose.
        commands: by name.
        client: of the webserver.
        processes: those that run now.
        restarts: how often one was started anew.
    """

    ledger: Ledger
    commands: dict[str, list[str]]
    client: Client
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    restarts: int = 0

    def __post_init__(self) -> None:
        self._over = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)

    def start(self) -> None:
        """Start all, and keep them running."""
        for name in self.commands:
            self._start(name)
        self._supervisor.start()

    def stop(self) -> None:
        """End all, and everything below them."""
        self._over.set()
        if self._supervisor.is_alive():
            self._supervisor.join()
        for name in reversed(self.commands):
            self.kill(name)
        for pid in self.below():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill(self, name: str) -> None:
        """Kill a service alone; what it has started lives on, as it may."""
        process = self.processes[name]
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)
        process.wait()

    def below(self, word: str = "") -> list[int]:
        """Find the processes of the ledger, besides the services, with a word in their command."""
        mine = f"FAULT_HOME={self.ledger.folder}".encode()
        services = {process.pid for process in self.processes.values() if process.poll() is None}
        found: list[int] = []
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                said = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if mine in (place / "environ").read_bytes() and word in said:
                    found.append(int(place.name))
        return [pid for pid in found if pid not in services]

    def switch_on(self, sensor: str) -> None:
        """Start a sensor, as the UI's switch does."""
        selector = {
            "repositoryName": "__repository__",
            "repositoryLocationName": "ledger",
            "sensorName": sensor,
        }

        def started() -> bool:
            answer = self.client.ask(_START_SENSOR, sensor=selector)["startSensor"]
            return answer["__typename"] == "Sensor"

        until(started, seconds=_BOOT, what=f"{sensor} is switched on")

    def cancel_a_run(self) -> bool:
        """Cancel a run, as the UI's button does; False when none is at work."""
        with suppress(OSError, AssertionError):  # the webserver may just be away
            runs = self.client.ask(_STARTED)["runsOrError"]["results"]
            if runs:
                done = self.client.ask(_CANCEL, id=runs[0]["runId"])["terminateRun"]
                return done["__typename"] == "TerminateRunSuccess"
        return False

    def _start(self, name: str) -> None:
        variables = {
            **os.environ,
            **self.ledger.variables,
            "DAGSTER_HOME": str(self.ledger.folder / "home"),
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "FAULT_HOME": str(self.ledger.folder),
        }
        log = self.ledger.folder / f"{name.replace(' ', '-')}.log"
        with log.open("ab") as out:
            self.processes[name] = subprocess.Popen(
                self.commands[name],
                cwd=self.ledger.folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _supervise(self) -> None:
        while not self._over.wait(1):
            for name, process in list(self.processes.items()):
                if process.poll() is not None and not self._over.is_set():
                    self.restarts += 1
                    self._start(name)


@contextmanager
def served(ledger: Ledger, instance: Path) -> Iterator[Services]:
    """Serve a ledger as long as the context is open.

    Args:
        ledger: its catalog is what Dagster shows.
        instance: the `dagster.yaml`.
    """
    home = ledger.folder / "home"
    home.mkdir(exist_ok=True)
    # What nobody answers for any more is looked for sooner than a person would want.
    text = instance.read_text().replace("poll_interval_seconds: 30", "poll_interval_seconds: 5")
    (home / "dagster.yaml").write_text(text)
    (ledger.folder / "kept" / "definitions.py").write_text(_DEFINITIONS)
    code, web = free_port(), free_port()
    workspace = ledger.folder / "workspace.yaml"
    workspace.write_text(_WORKSPACE.format(port=code))
    local = ["-h", "127.0.0.1", "-p"]
    services = Services(
        ledger,
        {
            # First of all: two processes that make Dagster's tables at once disturb each other.
            WEB: [str(BIN / "dagster-webserver"), "-w", str(workspace), *local, str(web)],
            CODE: [
                str(BIN / "dagster"),
                "api",
                "grpc",
                "-m",
                "kept.definitions",
                *local,
                str(code),
            ],
            DAEMON: [str(BIN / "dagster-daemon"), "run", "-w", str(workspace)],
        },
        Client(f"http://127.0.0.1:{web}/graphql"),
    )
    try:
        services.start()
        until(services.client.is_ready, seconds=_BOOT, what="the services are up")
        yield services
    finally:
        services.stop()
