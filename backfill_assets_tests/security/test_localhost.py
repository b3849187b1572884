"""By default everything of ours listens on this machine's loopback, and nowhere else."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKOUT = Path(__file__).parents[2]
_LISTEN = "0A"


def test_the_ui_is_started_for_this_machine_only():
    (line,) = [
        line for line in (CHECKOUT / "Makefile").read_text().splitlines() if "dagster dev" in line
    ]
    assert "-h 127.0.0.1" in line


@pytest.mark.parametrize("name", ["dagster.yaml", "dagster.postgres.yaml"])
def test_no_instance_opens_a_port_or_holds_a_secret(name: str):
    text = (CHECKOUT / name).read_text()
    assert "0.0.0.0" not in text  # noqa: S104 - it is looked for
    for key, value in _leaves(yaml.safe_load(text)):
        if "password" in key or "url" in key:
            assert value == {"env": "DAGSTER_POSTGRES_URL"}, key


def _leaves(found: object, key: str = "") -> list[tuple[str, object]]:
    if not isinstance(found, dict) or "env" in found:
        return [(key, found)]
    return [leaf for name, inner in found.items() for leaf in _leaves(inner, str(name))]


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells who listens")
def test_an_embedded_spark_listens_on_this_machine_only(spark: SparkSession):
    if "BACKFILL_TEST_SPARK" in os.environ:
        pytest.skip("this run's Spark is none of this process")
    gateway: Any = spark.sparkContext._gateway
    driver = gateway.proc.pid
    found = listening(driver)
    assert found
    assert {address for address in found if not address.startswith(("127.", "::1"))} == set()


def listening(pid: int) -> set[str]:
    """Give the addresses on which a process listens."""
    links = (Path(f"/proc/{pid}/fd") / name for name in os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
    sockets = {str(link.readlink()) for link in links if link.is_symlink()}
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTEN and f"socket:[{fields[9]}]" in sockets:
                found.add(_address(fields[1].partition(":")[0]))
    return found


def _address(digits: str) -> str:
    words = [int(digits[at : at + 8], 16) for at in range(0, len(digits), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    if len(words) == 1:
        return socket.inet_ntop(socket.AF_INET, packed)
    return socket.inet_ntop(socket.AF_INET6, packed).removeprefix("::ffff:")
