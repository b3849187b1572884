from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.warehouse.spark.jars import spark_home
from backfill_assets.warehouse.spark.local_files import compile_local_files, jar_in
from backfill_assets_tests.setup.test_archive_classes import spark as spark_that

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def test_the_access_to_local_files_is_compiled_once_and_replaces_that_of_an_older_release(
    tmp_path: Path,
):
    older = tmp_path / "backfill-assets-local-files-0.jar"
    older.touch()

    compile_local_files(tmp_path, spark_home(), print)
    compile_local_files(tmp_path, spark_that(tmp_path, "exit 1"), pytest.fail)

    assert [jar.name for jar in tmp_path.glob("*.jar")] == [jar_in(tmp_path).name]


def test_without_a_compiler_the_set_up_goes_on_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    compile_local_files(tmp_path, spark_that(tmp_path, "echo 'no class found'; exit 1"), print)

    assert not [*tmp_path.glob("*.jar")]
    assert "no class found" in capsys.readouterr().out


@pytest.mark.spark
def test_files_that_spark_writes_have_the_permissions_that_hadoop_asks_for(
    spark: SparkSession, tmp_path: Path
):
    assert spark.conf.get("spark.hadoop.fs.file.impl") == "backfill_assets.LocalFiles"

    spark.range(3).write.parquet(str(tmp_path / "rows"))

    # By default Hadoop's umask, 022, counts, and not that of the process.
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "rows").glob("*.parquet")}
    assert modes == {0o644}
