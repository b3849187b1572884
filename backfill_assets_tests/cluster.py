"""A real standalone cluster on this machine: one master and two workers, from the installed Spark."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import IO, TYPE_CHECKING

from backfill_assets.warehouse.spark.connect_server import server_environment
from backfill_assets.warehouse.spark.jars import spark_home
from backfill_assets_tests.spark import free_port, small_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets.warehouse.spark.session import SparkSettings

WORKERS = 2
_DEPLOY = "org.apache.spark.deploy"


class ClusterDiedError(Exception):
    """A process of the cluster ended before all of it was there."""


@contextmanager
def cluster(folder: Path) -> Iterator[SparkSettings]:
    """Run a cluster for as long as the context is open; give the settings of a session on it."""
    logs = folder / "cluster"
    logs.mkdir(parents=True)
    port, page = free_port(), free_port()
    master = f"spark://127.0.0.1:{port}"
    with ExitStack() as running:

        def run(name: str, kind: str, *arguments: str) -> None:
            log = running.enter_context((logs / f"{name}.log").open("wb"))
            running.enter_context(_process(log, f"{_DEPLOY}.{kind}", *arguments))

        here = ("--host", "127.0.0.1")
        run("master", "master.Master", *here, "--port", str(port), "--webui-port", str(page))
        for number in range(WORKERS):
            size = ("--cores", "1", "--memory", "768m", "--webui-port", str(free_port()))
            work = ("--work-dir", str(logs / f"work-{number}"))
            run(f"worker-{number}", "worker.Worker", *here, *size, *work, master)
        _wait_for_workers(page, logs)
        small = small_settings(folder)
        own = {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": "768m",
            "spark.executor.cores": "1",
        }
        yield replace(small, master=master, extra={**small.extra, **own})


@contextmanager
def _process(log: IO[bytes], kind: str, *arguments: str) -> Iterator[None]:
    small = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "256m"}
    started = subprocess.Popen(
        [str(spark_home() / "bin" / "spark-class"), kind, *arguments],
        env=server_environment(os.environ) | small,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    try:
        yield
    finally:
        started.terminate()
        started.wait()


def _wait_for_workers(page: int, logs: Path) -> None:
    while _workers(page) < WORKERS:
        said = "\n".join(log.read_text(errors="replace")[-2000:] for log in logs.glob("*.log"))
        if "Exception" in said or "Shutdown hook called" in said:
            raise ClusterDiedError(said)
        time.sleep(0.5)


def _workers(page: int) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{page}/json/", timeout=5) as answer:
            return json.load(answer)["aliveworkers"]
    except OSError:
        return 0
