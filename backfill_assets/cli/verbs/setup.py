"""`backfill setup`: fetch the jars that Spark needs beside the Python packages, once."""

from __future__ import annotations

from typing import Annotated

import typer

from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import err, print_json, say
from backfill_assets.intervals.text import counted
from backfill_assets.settings import read_settings
from backfill_assets.warehouse.spark.class_archive import ARCHIVE, archive
from backfill_assets.warehouse.spark.jars import fetch_jars, spark_home
from backfill_assets.warehouse.spark.local_files import compile_local_files


def setup(
    s3: Annotated[
        bool, typer.Option("--s3", help="Also the jars by which Spark reads and writes S3 (13 MB).")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch the jars that Spark needs for Delta tables, and let Spark start faster.

    The jars are stored in the folder that BACKFILL_JARS_DIR names, by default `.spark-jars` in this folder; existing jars are kept.
    Spark's own resolver fetches them (30 MB). Then Spark compiles a faster access to local files, and runs once, so that Java can keep
    its loaded classes (200 MB).

    Exit code: 0 when everything is there, 1 when it could not be fetched: then no incomplete file is left.

    Example: backfill setup

    Example: backfill setup --s3
    """
    folder = read_settings().jars_dir.resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    fetch_jars(folder, s3=s3, tell=_tell)
    compile_local_files(folder, spark_home(), _tell)
    archive(folder, spark_home(), _tell)
    jars, archived = len([*folder.rglob("*.jar")]), (folder / ARCHIVE).exists()
    if as_json:
        print_json({"folder": str(folder), "jars": jars, "class_archive": archived})
        return
    classes = "with" if archived else "without"
    say(f"{counted(jars, 'jar')} in {folder}, {classes} an archive of Spark's classes.")


def _tell(text: str) -> None:
    say(f"{text} ...", to=err)
