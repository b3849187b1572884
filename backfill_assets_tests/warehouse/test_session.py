from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.models.spark_tuning import TUNABLE
from backfill_assets.warehouse.spark.class_archive import ARCHIVE
from backfill_assets.warehouse.spark.jars import run_to_end, spark_home, submit
from backfill_assets.warehouse.spark.session import (
    CLASS_PATH_KEY,
    LOG_STORE_KEY,
    MissingJarsError,
    MissingS3JarsError,
    SparkSettings,
    UnsafeLogStoreError,
    batch_session,
    refuse_local_log_store,
    spark_config,
    start_session,
)
from backfill_assets_tests.spark import jars_dir, small_settings

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_jars_that_were_not_fetched_are_named_with_what_to_do(tmp_path: Path):
    settings = SparkSettings(jars_dir=tmp_path, warehouse=str(tmp_path))
    with pytest.raises(MissingJarsError, match="backfill setup"):
        spark_config(settings)


def test_tables_in_s3_need_the_jars_for_it(tmp_path: Path):
    (tmp_path / "delta.jar").write_bytes(b"")
    settings = SparkSettings(jars_dir=tmp_path, warehouse="s3://tables/warehouse")
    with pytest.raises(MissingS3JarsError, match="backfill setup --s3"):
        spark_config(settings)
    (tmp_path / "s3").mkdir()
    (tmp_path / "s3" / "hadoop-aws.jar").write_bytes(b"")
    config = spark_config(settings)
    assert "hadoop-aws.jar" in config["spark.jars"]
    assert config["spark.hadoop.fs.s3.impl"].endswith("S3AFileSystem")


def test_extra_settings_win(tmp_path: Path):
    (tmp_path / "delta.jar").write_bytes(b"")
    extra = {"spark.ui.enabled": "true"}
    settings = SparkSettings(jars_dir=tmp_path, warehouse=str(tmp_path), extra=extra)
    assert spark_config(settings)["spark.ui.enabled"] == "true"


def test_a_class_archive_is_mapped_with_the_class_path_that_it_was_made_for(tmp_path: Path):
    (tmp_path / "delta.jar").write_bytes(b"")
    own = {"spark.driver.extraJavaOptions": "-Dmine=1"}
    settings = SparkSettings(jars_dir=tmp_path, warehouse=str(tmp_path), extra=own, cores=16)
    without = spark_config(settings)
    assert without["spark.driver.extraJavaOptions"] == "-Dmine=1"
    (tmp_path / ARCHIVE).write_bytes(b"")
    found = spark_config(settings)
    assert f'"-XX:SharedArchiveFile={tmp_path / ARCHIVE}"' in found["spark.driver.extraJavaOptions"]
    assert found["spark.driver.extraJavaOptions"].endswith(" -Dmine=1")
    assert found[CLASS_PATH_KEY] == without[CLASS_PATH_KEY] == str(tmp_path / "delta.jar")
    theirs = replace(settings, extra={CLASS_PATH_KEY: "/opt/other.jar"})
    assert spark_config(theirs)[CLASS_PATH_KEY] == "/opt/other.jar"
    assert "spark.driver.extraJavaOptions" not in spark_config(theirs)


def test_a_jvm_that_finds_the_archive_unfit_starts_all_the_same(tmp_path: Path):
    (tmp_path / "delta.jar").write_bytes(b"")
    (tmp_path / ARCHIVE).write_bytes(b"no archive")
    settings = SparkSettings(jars_dir=tmp_path, warehouse=str(tmp_path))
    options = shlex.split(spark_config(settings)["spark.driver.extraJavaOptions"])
    done = subprocess.run(
        ["java", *options, "-version"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout == ""


def test_a_jvm_of_ours_compiles_quickly_on_few_cores_unless_told_otherwise(tmp_path: Path):
    (tmp_path / "delta.jar").write_bytes(b"")
    key, own = "spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=4"
    settings = SparkSettings(jars_dir=tmp_path, warehouse=str(tmp_path), cores=2, extra={key: own})
    quickly, _, last = spark_config(settings)[key].rpartition(" ")
    assert ("-XX:TieredStopAtLevel=1" in quickly.split(), last) == (True, own)
    for other in ({"master": "spark://there:7077"}, {"cores": 16}):
        assert spark_config(replace(settings, **other))[key] == own


def test_cores_are_counted_on_a_system_that_knows_no_limit_of_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert SparkSettings(jars_dir=tmp_path, warehouse=str(tmp_path)).cores == 7


def test_a_collector_that_a_person_chose_is_the_only_one(tmp_path: Path):
    (tmp_path / "delta.jar").write_bytes(b"")
    key, theirs = "spark.driver.extraJavaOptions", "-XX:+UseParallelGC"
    settings = SparkSettings(jars_dir=tmp_path, warehouse=str(tmp_path), cores=2)
    assert "-XX:+UseSerialGC" in spark_config(settings)[key].split()
    for chosen in (
        replace(settings, extra={key: theirs}),
        replace(settings, java_options=f"-Dmine=1 {theirs}"),
    ):
        assert "UseSerialGC" not in spark_config(chosen)[key]


def test_spark_starts_where_no_class_archive_was_made(tmp_path: Path):
    jars = tmp_path / "jars"
    shutil.copytree(jars_dir(), jars, ignore=shutil.ignore_patterns(ARCHIVE, "s3"), symlinks=True)
    config = spark_config(replace(small_settings(tmp_path), jars_dir=jars))
    assert config["spark.hadoop.fs.file.impl"] == "backfill_assets.LocalFiles"
    options = [word for setting in config.items() for word in ("--conf", "=".join(setting))]
    (tmp_path / "nothing.py").touch()
    done = run_to_end([*submit(spark_home()), *options, str(tmp_path / "nothing.py")])
    assert done.returncode == 0, done.stdout


@pytest.mark.spark
@pytest.mark.parametrize("said", ["", "sc://localhost:15002"])
def test_the_settings_alone_say_whether_there_is_a_server(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, said: str
):
    monkeypatch.setenv("SPARK_REMOTE", said)

    assert start_session(small_settings(tmp_path)).version == spark.version


@pytest.mark.spark
def test_a_batch_has_views_and_settings_of_its_own(spark: SparkSession):
    session, other = batch_session(spark), batch_session(spark)
    session.sql("SELECT 1 AS n").createOrReplaceTempView("mine")
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", "mine")
    assert not other.catalog.tableExists("mine")
    assert other.conf.get("spark.databricks.delta.commitInfo.userMetadata", "none") == "none"
    assert other.conf.get("spark.sql.session.timeZone") == "UTC"
    assert other.conf.get("spark.sql.shuffle.partitions") == "2"


@pytest.mark.spark
def test_every_setting_that_a_batch_may_have_can_be_set_while_spark_runs(spark: SparkSession):
    assert [key for key in TUNABLE if not spark.conf.isModifiable(key)] == []


@pytest.mark.spark
def test_a_batchs_own_settings_are_those_of_no_other_session(
    spark: SparkSession,
):
    tuning = {"spark.sql.shuffle.partitions": "7", "spark.sql.adaptive.enabled": "false"}
    batch = batch_session(spark, tuning)
    for key, value in tuning.items():
        assert batch.conf.get(key) == value
        assert batch_session(spark).conf.get(key) != value
        assert spark.conf.get(key) != value


@pytest.mark.spark
@pytest.mark.parametrize(
    "store", ["io.delta.storage.LocalLogStore", "io.delta.storage.HDFSLogStore"]
)
def test_the_log_store_that_loses_commits_is_refused(spark: SparkSession, store: str):
    session = batch_session(spark)
    session.conf.set(LOG_STORE_KEY, store)
    if store.endswith("LocalLogStore"):
        with pytest.raises(UnsafeLogStoreError, match="HDFSLogStore"):
            refuse_local_log_store(session)
    else:
        refuse_local_log_store(session)
