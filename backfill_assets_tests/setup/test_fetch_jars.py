from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.warehouse.spark import jars

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WANTED = "io.delta:delta-spark_4.2_2.13:4.4.0"
DELTA = "io.delta_delta-spark_4.2_2.13-4.4.0.jar"
JTS = "org.locationtech.jts_jts-core-1.20.0.jar"
LOG4J = "org.apache.logging.log4j_log4j-api-2.25.3.jar"
UNITY = "io.unitycatalog_unitycatalog-client-0.6.0.jar"

# Finds the folder in `--conf spark.jars.ivy=FOLDER`, as spark-submit does.
RESOLVING = f"""
for word in "$@"; do case "$word" in spark.jars.ivy=*) ivy="${{word#*=}}" ;; esac; done
mkdir -p "$ivy/jars" && cd "$ivy/jars" && touch {DELTA} {JTS} {LOG4J} {UNITY}
"""
UNREACHABLE = "echo 'Server access error: java.net.UnknownHostException' >&2; exit 1"


@pytest.fixture
def spark_doing(tmp_path: Path) -> Callable[[str], Path]:
    """Make a Spark home whose spark-submit does what it is told here."""

    def make(body: str) -> Path:
        home = tmp_path / "spark"
        (home / "jars").mkdir(parents=True, exist_ok=True)
        (home / "bin").mkdir(exist_ok=True)
        submit = home / "bin" / "spark-submit"
        submit.write_text(f"#!/bin/sh\n{body}\n")
        submit.chmod(0o755)
        return home

    return make


def jars_in(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.jar")}


def test_only_jars_that_spark_does_not_bring_are_kept(
    spark_doing: Callable[[str], Path], tmp_path: Path
):
    home = spark_doing(RESOLVING)
    (home / "jars" / "jts-core-1.20.0.jar").touch()

    jars.fetch(tmp_path / "kept", WANTED, home, print)

    assert jars_in(tmp_path / "kept") == {DELTA}
    assert not (tmp_path / "kept.partial").exists()


def test_jts_is_kept_for_a_spark_without_it(spark_doing: Callable[[str], Path], tmp_path: Path):
    jars.fetch(tmp_path / "kept", WANTED, spark_doing(RESOLVING), print)

    assert jars_in(tmp_path / "kept") == {DELTA, JTS}


def test_a_second_start_resolves_nothing(spark_doing: Callable[[str], Path], tmp_path: Path):
    jars.fetch(tmp_path / "kept", WANTED, spark_doing(RESOLVING), print)

    jars.fetch(tmp_path / "kept", WANTED, spark_doing("exit 1"), print)

    assert jars_in(tmp_path / "kept") == {DELTA, JTS}


def test_another_version_or_a_lost_jar_is_fetched_again(
    spark_doing: Callable[[str], Path], tmp_path: Path
):
    kept = tmp_path / "kept"
    jars.fetch(kept, WANTED, spark_doing(RESOLVING), print)
    assert not jars.is_filled(kept, "io.delta:delta-spark_4.2_2.13:4.5.0")
    (kept / DELTA).unlink()

    jars.fetch(kept, WANTED, spark_doing(RESOLVING), print)

    assert jars.is_filled(kept, WANTED)


def test_an_unreachable_repository_is_said_and_leaves_no_folder(
    spark_doing: Callable[[str], Path], tmp_path: Path
):
    with pytest.raises(RequestError) as failure:
        jars.fetch(tmp_path / "kept", WANTED, spark_doing(UNREACHABLE), print)

    message = str(failure.value)
    assert "java.net.UnknownHostException" in message
    assert f"could not fetch {WANTED}" in message
    assert "run `backfill setup` again" in message
    assert {path.name for path in tmp_path.iterdir()} == {"spark"}


def test_a_failed_fetch_keeps_the_jars_of_before(
    spark_doing: Callable[[str], Path], tmp_path: Path
):
    kept = tmp_path / "kept"
    jars.fetch(kept, WANTED, spark_doing(RESOLVING), print)

    with pytest.raises(RequestError):
        jars.fetch(kept, "io.delta:delta-spark_4.2_2.13:4.5.0", spark_doing(UNREACHABLE), print)

    assert jars_in(kept) == {DELTA, JTS}


def test_a_resolver_that_brings_no_delta_has_failed(
    spark_doing: Callable[[str], Path], tmp_path: Path
):
    with pytest.raises(RequestError):
        jars.fetch(tmp_path / "kept", WANTED, spark_doing("exit 0"), print)

    assert not (tmp_path / "kept").exists()


def test_the_wanted_delta_is_the_one_of_the_installed_packages():
    assert jars.coordinate() == WANTED


HADOOP = "org.apache.hadoop_hadoop-aws-3.5.0.jar"
SDK = "software.amazon.awssdk_s3-2.35.4.jar"
NETTY = "io.netty_netty-common-4.1.126.Final.jar"


def test_for_s3_the_clients_of_the_hadoop_that_spark_brings_are_kept(
    spark_doing: Callable[[str], Path], tmp_path: Path
):
    home = spark_doing(RESOLVING.replace(DELTA, f"{HADOOP} {SDK} {NETTY}"))
    (home / "jars" / "hadoop-client-api-3.5.0.jar").touch()
    wanted = jars.s3_coordinates(home)
    assert wanted.startswith("org.apache.hadoop:hadoop-aws:3.5.0,software.amazon.awssdk:")

    jars.fetch(tmp_path / "kept" / "s3", wanted, home, print)

    assert jars_in(tmp_path / "kept" / "s3") == {HADOOP, SDK, JTS}
