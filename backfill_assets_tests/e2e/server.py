"""A real webserver and daemon over the toy shop: `dagster dev` as somebody would start it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets_tests.e2e.graphql import Client
from backfill_assets_tests.e2e.polling import until
from backfill_assets_tests.spark import jars_dir

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CHECKOUT = Path(__file__).resolve().parents[2]
CATALOG = "backfill_assets_tests.toy"
DEFINITIONS = "backfill_assets_tests.toy_definitions"
BIN = Path(sys.executable).parent

_BOOT = 240
_STOP = 30
_WORKSPACE = """
load_from:
  - python_module:
      module_name: {definitions}
      attribute: defs
      location_name: toy
"""


@dataclass(frozen=True)
class Project:
    """A data folder and a Dagster home of their own, and the commands of this checkout.

    Attributes:
        folder: where all of it lies.
        catalog: the module with the models and sources.
        definitions: the module that Dagster loads.
        settings: further variables of the environment.
    """

    folder: Path
    catalog: str = CATALOG
    definitions: str = DEFINITIONS
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def data_root(self) -> str:
        return str(self.folder / "data")

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "BACKFILL_CATALOG": self.catalog,
            "BACKFILL_DEFINITIONS": self.definitions,
            "BACKFILL_BIN": str(BIN),
            "BACKFILL_DATA_DIR": self.data_root,
            "BACKFILL_JARS_DIR": str(jars_dir().resolve()),
            "BACKFILL_LEASE_SECONDS": "10",
            "BACKFILL_SPARK_MEMORY": "1g",
            "DAGSTER_HOME": str(self.folder / "home"),
            "DAGSTER_DISABLE_TELEMETRY": "1",
            **self.settings,
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end, in the checkout."""
        return subprocess.run(
            words,
            cwd=CHECKOUT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def backfill(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run our own command."""
        return self.run(str(BIN / "backfill"), *words)


def new_project(
    folder: Path,
    landed: Path,
    *,
    catalog: str = CATALOG,
    definitions: str = DEFINITIONS,
    **settings: str,
) -> Project:
    """Lay out a project: the toy's landed sources, and the instance as this checkout has it."""
    shutil.copytree(landed, folder / "data")
    return laid_out(folder, catalog=catalog, definitions=definitions, settings=settings)


def laid_out(
    folder: Path,
    *,
    catalog: str,
    definitions: str,
    settings: Mapping[str, str],
    at_once: int | None = None,
) -> Project:
    """Put Dagster's home and workspace beside a data folder that is there.

    Args:
        folder: its `data` is the data folder.
        catalog: the module with the models and sources.
        definitions: the module that Dagster loads.
        settings: further variables of the environment.
        at_once: how many runs may run at once; none, as many as this checkout lets.
    """
    (folder / "home").mkdir()
    instance = (CHECKOUT / "dagster.yaml").read_text()
    if at_once is not None:
        instance = re.sub(r"max_concurrent_runs: \d+", f"max_concurrent_runs: {at_once}", instance)
    (folder / "home" / "dagster.yaml").write_text(instance)
    (folder / "workspace.yaml").write_text(_WORKSPACE.format(definitions=definitions))
    return Project(folder, catalog, definitions, settings)


@contextmanager
def serving(project: Project) -> Iterator[Client]:
    """Start `dagster dev` in a session of its own, and end it with everything that it started."""
    port = _free_port()
    command = [str(BIN / "dagster"), "dev", "-w", str(project.folder / "workspace.yaml")]
    log = (project.folder / "server.log").open("w")
    process = subprocess.Popen(
        [*command, "-h", "127.0.0.1", "-p", str(port)],
        cwd=CHECKOUT,
        env=project.environment,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        client = Client(f"http://127.0.0.1:{port}/graphql")
        until(client.is_ready, seconds=_BOOT, what="the webserver answers and the daemon is up")
        yield client
    finally:
        _stop(process)
        log.close()


def _stop(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGINT)
    timer = threading.Timer(_STOP, os.killpg, (process.pid, signal.SIGKILL))
    timer.start()
    process.wait()
    timer.cancel()
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # what outlived its parent


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
