"""What only a Connect server can show; these run where BACKFILL_TEST_SPARK is `connect`."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark
import pytest

from backfill_assets.warehouse.spark import connect as ours
from backfill_assets.warehouse.spark.connect import (
    SparkUnreachableError,
    SparkVersionError,
    SparkWithoutDeltaError,
    connect,
    hang_up,
    release,
)
from backfill_assets.warehouse.spark.connect_server import ConnectServer
from backfill_assets.warehouse.spark.session import batch_session
from backfill_assets.warehouse.spark.shared_session import SharedSession
from backfill_assets_tests.builders import a_source
from backfill_assets_tests.engine.world import on, row
from backfill_assets_tests.spark import free_port, small_settings
from backfill_assets_tests.spark_engines.client import CLIENTS, DAYS, LOOP, graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backfill_assets_tests.engine.world import World

pytestmark = [
    pytest.mark.spark,
    pytest.mark.connect,
    pytest.mark.skipif(
        os.environ.get("BACKFILL_TEST_SPARK") != "connect", reason="there is no Connect server"
    ),
]


def url_of(spark: SparkSession) -> str:
    return f"sc://{spark.client._builder.endpoint}"  # pyright: ignore[reportAttributeAccessIssue]


def test_a_server_of_another_version_is_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(pyspark, "__version__", "4.9.1")
    with pytest.raises(SparkVersionError, match=r"runs Spark 4\.2.*client is Spark 4\.9\.1"):
        connect(url_of(spark), {}, patience=5)


def test_a_server_without_delta_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ours, "_CATALOG_KEY", "spark.sql.catalog.none")
    with pytest.raises(SparkWithoutDeltaError, match="make spark-server"):
        connect(url_of(spark), {}, patience=5)


def test_a_session_ends_on_the_server_when_it_is_hung_up(spark: SparkSession):
    other = connect(url_of(spark), {}, patience=5)
    assert other.range(3).count() == 3
    hang_up(other)
    hang_up(other)
    assert spark.range(3).count() == 3


def test_many_clients_of_one_server_fill_one_table_and_lose_nothing(world: World):
    world.land(a_source(), *(row(number) for number in range(1, DAYS + 1)))
    url = url_of(world.spark)
    clients = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "backfill_assets_tests.spark_engines.client"),
                *(url, str(world.root), str(first)),
            ],
            cwd=Path(__file__).parents[2],
        )
        for first in range(1, CLIENTS + 1)
    ]
    assert [client.wait() for client in clients] == [0] * CLIENTS
    assert world.ready(graph(), LOOP) == f"2024-01-01..2024-01-0{DAYS} ({DAYS})"
    assert world.rows(LOOP, "ds") == [(on(number),) for number in range(1, DAYS + 1)]


def test_a_server_that_was_restarted_is_found_again_and_one_that_stays_away_is_named(
    tmp_path: Path, spark: SparkSession
):
    del spark  # pyspark has one default session; the other server's must not become it
    settings = small_settings(tmp_path)
    server = ConnectServer(tmp_path / "server", free_port())
    server.start(settings, os.environ)
    try:
        shared = SharedSession(replace(settings, remote=server.url, patience=5))
        assert shared().range(2).count() == 2
        assert shared() is shared()
        assert server.stop()
        with pytest.raises(SparkUnreachableError, match="make spark-server"):
            shared()
        server.start(settings, os.environ)
        assert shared().range(3).count() == 3
        shared.stop()
    finally:
        server.stop()


def test_a_batch_does_not_compile_again_what_another_has_compiled(
    tmp_path: Path, spark: SparkSession
):
    del spark  # as above
    settings, loaded = small_settings(tmp_path), tmp_path / "classes.log"
    server = ConnectServer(tmp_path / "server", free_port())
    server.start(settings, {**os.environ, "JAVA_TOOL_OPTIONS": f"-Xlog:class+load:file={loaded}"})
    try:
        shared = SharedSession(replace(settings, remote=server.url, patience=5))
        compiled = [_compiled_after(shared(), loaded) for _ in range(3)]
        assert compiled[0] > 0
        assert compiled == [compiled[0]] * 3
        shared.stop()
    finally:
        server.stop()


def _compiled_after(spark: SparkSession, loaded: Path) -> int:
    """Run a query as a batch does, and count the classes that the server has compiled so far."""
    session = batch_session(spark)
    assert len(session.sql("SELECT id % 7, sum(id) FROM range(100) GROUP BY 1").collect()) == 7
    release(session)
    return loaded.read_text().count("expressions.GeneratedClass source")
