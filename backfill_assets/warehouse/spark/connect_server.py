"""Start and stop a local Spark Connect server from the installed Spark, for this machine alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.warehouse.spark.connect import DEFAULT_PORT
from backfill_assets.warehouse.spark.jars import spark_home
from backfill_assets.warehouse.spark.session import spark_config

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.warehouse.spark.session import SparkSettings

_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
_HERE = "127.0.0.1"
_SUBMIT_OPTIONS = {"spark.driver.memory": "--driver-memory", "spark.master": "--master"}


@dataclass(frozen=True, slots=True)
class ConnectServer:
    """A server of ours: its port, and the folder with its log and process id.

    Attributes:
        folder: holds ``spark-server.log`` and ``spark-server.pid``.
        port: on 127.0.0.1; other machines can't reach it.
    """

    folder: Path
    port: int = DEFAULT_PORT

    @property
    def url(self) -> str:
        """The URL for SPARK_REMOTE."""
        return f"sc://localhost:{self.port}"  # by this name alone Spark's client sends a token

    @property
    def log(self) -> Path:
        """The file with the server's output."""
        return self.folder / "spark-server.log"

    def process(self) -> int | None:
        """Give the id of the running server's process; None when none of ours runs."""
        try:
            pid = int(self._pid_file.read_text())
        except (OSError, ValueError):
            return None
        return pid if _is_server(pid) else None

    def start(self, settings: SparkSettings, environment: Mapping[str, str]) -> int:
        """Start it, and wait until it answers.

        Args:
            settings: as for a session of our own; the server has all of them.
            environment: of the process that starts it; credentials belong there.

        Returns:
            The id of its process; that of the one that runs already, if one does.

        Raises:
            RequestError: another program answers there.
            RequestError: it ended instead.
            MissingJarsError: the jars have not been fetched.
        """
        running = self.process()
        if running is not None:
            return running
        if _answers(self.port):
            raise RequestError(
                found=f"something answers on port {self.port} already",
                do="stop it (`make spark-server-stop` stops one of ours), or name another port",
            )
        self.folder.mkdir(parents=True, exist_ok=True)
        with _private(self.log) as log:
            started = subprocess.Popen(  # noqa: S603 - our own arguments
                server_command(settings, self.port),
                env=server_environment(environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal must not stop it
            )
        _STARTED[started.pid] = started
        with _private(self._pid_file) as file:
            file.write(str(started.pid).encode())
        while not _answers(self.port):
            if started.poll() is not None:
                self._pid_file.unlink()
                raise RequestError(
                    found="the Spark Connect server ended before it answered; the end of "
                    f"{self.log}:\n{_end_of(self.log)}"
                )
            time.sleep(0.2)
        return started.pid

    def stop(self) -> bool:
        """Stop it; return whether there was one.

        Batches that compute on it fail, and the next run repeats them.
        """
        pid = self.process()
        if pid is None:
            self._pid_file.unlink(missing_ok=True)
            return False
        for number in (signal.SIGTERM, signal.SIGKILL):
            os.kill(pid, number)
            if _ended(pid):
                break
        self._pid_file.unlink(missing_ok=True)
        if pid in _STARTED:
            _STARTED.pop(pid).wait()
        return True

    @property
    def _pid_file(self) -> Path:
        return self.folder / "spark-server.pid"


def server_command(settings: SparkSettings, port: int) -> list[str]:
    """Give the command that runs a server with exactly the settings of a session of our own."""
    config = spark_config(settings) | {
        "spark.master": settings.master,
        "spark.app.name": "backfill_assets spark-server",
        "spark.connect.grpc.binding.address": _HERE,
        "spark.connect.grpc.binding.port": str(port),
        "spark.log.level": settings.extra.get("spark.log.level", "WARN"),
    }
    words = [str(spark_home() / "bin" / "spark-submit"), "--class", _CLASS]
    for key, value in config.items():
        option = _SUBMIT_OPTIONS.get(key)
        words += [option, value] if option else ["--conf", f"{key}={value}"]
    return [*words, "spark-internal"]


def server_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Give the environment of Spark's own processes: ours, without variables that they must not see.

    The URL of our state may hold a password, and a server must not connect to another server.
    """
    withheld = ("BACKFILL_", "SPARK_REMOTE", "SPARK_CONNECT_MODE", "SPARK_LOCAL_REMOTE")
    kept = {name: text for name, text in environment.items() if not name.startswith(withheld)}
    # Functions of Python models run in this very Python, unless the environment names another.
    return {"PYSPARK_PYTHON": sys.executable, **kept, "SPARK_HOME": str(spark_home())}


def _private(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


def _answers(port: int) -> bool:
    try:
        socket.create_connection((_HERE, port), timeout=1).close()
    except OSError:
        return False
    return True


_STARTED: dict[int, subprocess.Popen[bytes]] = {}
"""The servers that this process has started, and waits for when it stops them."""


def _ended(pid: int) -> bool:
    for _ in range(100):
        if not _is_server(pid):
            return True
        time.sleep(0.1)
    return False


def _is_server(pid: int) -> bool:
    """Whether a process is a Connect server: process ids are reused."""
    return _CLASS in _command_of(pid)


def _command_of(pid: int) -> str:
    """Give a live process's command; nothing for one that has ended."""
    if Path("/proc/self/cmdline").exists():
        try:
            return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
        except OSError:
            return ""
    command = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603


def _end_of(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-20:])
