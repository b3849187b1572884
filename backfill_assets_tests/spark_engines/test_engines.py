"""The same write path on a Connect server and on a cluster, in processes of their own.

A process has one kind of Spark. So each engine runs the tests that are marked `connect` in a pytest
of its own; `make test-connect` runs all tests of the write path on a Connect server.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.warehouse.spark.connect import (
    SparkUnreachableError,
    connect,
    tells_lost,
)
from backfill_assets.warehouse.spark.connect_server import (
    ConnectServer,
    server_command,
    server_environment,
)
from backfill_assets.warehouse.spark.session import SparkSettings
from backfill_assets_tests.spark import free_port, small_settings

CHECKOUT = Path(__file__).parents[2]
ROOMS = ("spark_engines", "engine", "pipelines", "warehouse")
TOKEN = "planted-token"  # noqa: S105 - it must never be seen


@pytest.mark.spark
@pytest.mark.skipif("BACKFILL_TEST_SPARK" in os.environ, reason="this is an engine's own run")
@pytest.mark.story
@pytest.mark.parametrize("engine", ["connect", "cluster"])
def test_the_write_path_works_on_it(engine: str, tmp_path: Path):
    rooms = (f"backfill_assets_tests/{room}" for room in ROOMS)
    own = ("-q", "-m", "connect", "-p", "no:cacheprovider", f"--basetemp={tmp_path / 'own'}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *own, *rooms],
        cwd=CHECKOUT,
        env=os.environ | {"BACKFILL_TEST_SPARK": engine},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= 8


def test_a_server_that_does_not_answer_is_named_without_its_token():
    with pytest.raises(SparkUnreachableError, match="make spark-server") as refused:
        connect(f"sc://127.0.0.1:{free_port()}/;token={TOKEN}", {}, patience=0.2)
    assert "127.0.0.1" in str(refused.value)
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("[INVALID_HANDLE.SESSION_NOT_FOUND] The handle x is invalid", True),
        ("<_InactiveRpcError ... status = StatusCode.UNAVAILABLE ...>", True),
        ("[TABLE_OR_VIEW_NOT_FOUND] no", False),
    ],
)
def test_a_lost_session_is_known_by_its_words(text: str, *, lost: bool):
    assert tells_lost(text) is lost


def test_a_server_of_ours_listens_on_this_machine_alone(tmp_path: Path):
    settings = _settings(tmp_path)
    words = server_command(settings, 15002)
    assert "spark.connect.grpc.binding.address=127.0.0.1" in words
    assert "spark.driver.bindAddress=127.0.0.1" in words
    assert "spark.ui.enabled=false" in words
    assert words[words.index("--driver-memory") + 1] == "2g"


def test_a_server_is_not_told_what_is_no_business_of_its(tmp_path: Path):
    del tmp_path
    mine = {
        "BACKFILL_STATE_URL": "postgresql://me:secret@host/x",
        "SPARK_REMOTE": "sc://elsewhere",
        "AWS_SECRET_ACCESS_KEY": "needed",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN": "needed too",
    }
    given = server_environment(mine)
    assert {*given} == {
        "PYSPARK_PYTHON",
        "SPARK_HOME",
        "AWS_SECRET_ACCESS_KEY",
        "SPARK_CONNECT_AUTHENTICATE_TOKEN",
    }


def test_a_port_that_something_else_answers_on_is_refused(tmp_path: Path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server = ConnectServer(tmp_path, taken.getsockname()[1])
        with pytest.raises(RequestError, match=f"something answers on port {server.port} already"):
            server.start(_settings(tmp_path), os.environ)


def test_the_process_of_somebody_else_is_never_stopped(tmp_path: Path):
    (tmp_path / "spark-server.pid").write_text(str(os.getpid()))
    assert not ConnectServer(tmp_path, 15002).stop()
    assert not (tmp_path / "spark-server.pid").exists()


@pytest.mark.spark
def test_a_server_that_ends_at_once_says_why(tmp_path: Path):
    settings = SparkSettings(
        jars_dir=small_settings(tmp_path).jars_dir,
        warehouse=str(tmp_path),
        driver_memory="not a size",
    )
    with pytest.raises(RequestError, match=r"(?s)ended before it answered.*not a size"):
        ConnectServer(tmp_path / "server", free_port()).start(settings, os.environ)


def _settings(folder: Path) -> SparkSettings:
    (folder / "delta.jar").write_bytes(b"")
    return SparkSettings(jars_dir=folder, warehouse=str(folder), driver_memory="2g")
