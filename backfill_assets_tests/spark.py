"""One small Spark for all tests that need one: in this process, or as BACKFILL_TEST_SPARK says.

``connect`` starts a Connect server of ours, ``cluster`` a master with two workers. A process has
one kind of Spark: pyspark itself changes when it connects.
"""

from __future__ import annotations

import os
import socket
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.warehouse.spark.connect import hang_up
from backfill_assets.warehouse.spark.connect_server import ConnectServer
from backfill_assets.warehouse.spark.session import SparkSettings, start_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

_CHECKOUT = Path(__file__).parent.parent


def jars_dir() -> Path:
    """The folder with Delta's jars: BACKFILL_JARS_DIR, or the checkout's own."""
    return Path(os.environ.get("BACKFILL_JARS_DIR") or _CHECKOUT / ".spark-jars")


def small_settings(warehouse: Path) -> SparkSettings:
    """Small, and quick to start."""
    return SparkSettings(
        jars_dir=jars_dir(),
        warehouse=str(warehouse),
        master="local[2]",
        driver_memory="2g",
        shuffle_partitions=2,
        # Queries over a few rows are not worth code of their own, nor what runs them the best
        # compiler: a third less time, for each. The compiler's cache would be full after some
        # minutes, and nothing compiled any more. The demo and the end-to-end stories run Spark as
        # it is.
        extra={
            "spark.log.level": "ERROR",
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
            "spark.driver.extraJavaOptions": (
                "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
            ),
            # A store that fails is given up quickly.
            "spark.hadoop.fs.s3a.attempts.maximum": "2",
            "spark.hadoop.fs.s3a.retry.limit": "2",
            "spark.hadoop.fs.s3a.retry.interval": "50ms",
            "spark.hadoop.fs.s3a.retry.throttle.limit": "2",
            "spark.hadoop.fs.s3a.retry.throttle.interval": "50ms",
        },
    )


def start_test_session(warehouse: Path) -> SparkSession:
    """Start it in this process; the first test that needs it waits some seconds."""
    return start_session(small_settings(warehouse))


@contextmanager
def chosen_session(folder: Path) -> Iterator[SparkSession]:
    """Give the session that the whole test run shares."""
    with ENGINES[os.environ.get("BACKFILL_TEST_SPARK", "local")](folder) as settings:
        session = start_session(settings)
        try:
            yield session
        finally:
            hang_up(session)


@contextmanager
def embedded(folder: Path) -> Iterator[SparkSettings]:
    """Spark in this process."""
    yield small_settings(folder)


@contextmanager
def connect_server(folder: Path) -> Iterator[SparkSettings]:
    """A Connect server for as long as the context is open."""
    settings = small_settings(folder)
    server = ConnectServer(folder / "server", free_port())
    server.start(settings, os.environ)
    try:
        yield replace(settings, remote=server.url)
    finally:
        server.stop()


def free_port() -> int:
    """A port on which nothing listens at this moment."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def _cluster(folder: Path) -> Iterator[SparkSettings]:
    from backfill_assets_tests.cluster import cluster  # noqa: PLC0415 - it needs this module

    with cluster(folder) as settings:
        yield settings


ENGINES: dict[str, Callable[[Path], AbstractContextManager[SparkSettings]]] = {
    "local": embedded,
    "connect": connect_server,
    "cluster": _cluster,
}
