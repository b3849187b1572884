from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from backfill_assets.warehouse.spark.class_archive import archive

if TYPE_CHECKING:
    from pathlib import Path

# Finds the file in `--conf spark.driver.extraJavaOptions="-XX:ArchiveClassesAtExit=FILE" ...`.
ARCHIVING = r"""
for word in "$@"; do case "$word" in *ArchiveClassesAtExit=*)
  echo classes > "$(echo "$word" | sed 's/.*AtExit=//; s/".*//')" ;;
esac; done
"""


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "delta.jar").touch()
    return folder


def spark(tmp_path: Path, body: str) -> Path:
    """Make a Spark home whose spark-submit does what it is told here."""
    home = tmp_path / "spark"
    (home / "jars").mkdir(parents=True, exist_ok=True)
    os.utime(home / "jars", (0, 0))
    (home / "bin").mkdir(exist_ok=True)
    submit = home / "bin" / "spark-submit"
    submit.write_text(f"#!/bin/sh\n{body}\n")
    submit.chmod(0o755)
    return home


def test_an_archive_is_made_once(jars: Path, tmp_path: Path):
    archive(jars, spark(tmp_path, ARCHIVING), print)
    assert (jars / "classes.jsa").read_text() == "classes\n"

    archive(jars, spark(tmp_path, "exit 1"), print)
    assert sorted(file.name for file in jars.iterdir()) == ["classes.jsa", "delta.jar"]


def test_an_archive_of_another_spark_is_made_anew(jars: Path, tmp_path: Path):
    (jars / "classes.jsa").write_text("of an older Spark")
    os.utime(jars / "classes.jsa", (1, 1))
    home = spark(tmp_path, ARCHIVING)
    os.utime(home / "jars", (2, 2))

    archive(jars, home, print)

    assert (jars / "classes.jsa").read_text() == "classes\n"


def test_without_an_archive_the_set_up_goes_on_and_says_why(
    jars: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    archive(jars, spark(tmp_path, "echo 'Unrecognized option: -XX:Archive'; exit 1"), print)

    assert [file.name for file in jars.iterdir()] == ["delta.jar"]
    assert "Unrecognized option: -XX:Archive" in capsys.readouterr().out
