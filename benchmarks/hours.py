"""The hourly year: 8,760 cells of three rows each are filled, and eight weeks of them are read.

`python -m benchmarks.hours` measures it alone. It is read by a Spark that has read another Delta table
before, so what is measured is this table's log and its many small files, and no start.
"""

from __future__ import annotations

import shutil
import time
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import typer
from deltalake import DeltaTable, write_deltalake

from backfill_assets.reading import Published, published
from backfill_assets.settings import read_settings
from backfill_assets.warehouse.spark.session import spark_settings, start_session
from benchmarks.commands import BACKFILL, RESULTS
from benchmarks.hours_catalog import FIRST
from benchmarks.hours_year_catalog import HOURS, hours, seen
from benchmarks.part import Part, rounded
from benchmarks.process import measured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

ROWS = 26_000
_READ = (FIRST + timedelta(weeks=20), FIRST + timedelta(weeks=28))
_FILL_S, _READ_S = f"first fill of {HOURS:,} hours, s", "eight weeks of hours read, s"
_FILES = f"files of {HOURS:,} hours"
_GOALS = {_FILL_S: "≤ 30", _READ_S: "≤ 3", _FILES: "≤ 800"}


def hours_part(folder: Path) -> Part:
    """Measure it as a part of the benchmark."""
    shutil.rmtree(folder, ignore_errors=True)
    _land(str(folder / seen.path))
    env = {"BACKFILL_CATALOG": "benchmarks.hours_year_catalog", "BACKFILL_DATA_DIR": str(folder)}
    fill = measured([*BACKFILL, "run", "--json"], env)
    settings = read_settings().model_copy(update={"data_dir": str(folder)})
    found = published(settings=settings)
    (table,) = found.resolve(hours.name).layers
    files = len(DeltaTable(table.path, version=table.delta_version).file_uris())
    figures = {_FILL_S: fill.wall, _READ_S: _read(found, str(folder / seen.path))}
    figures[_FILES] = float(files)
    shutil.rmtree(folder)
    line = f"{HOURS:,} hours of {ROWS:,} rows: filled with {fill.cpu:.0f} CPU s"
    return Part("hours", rounded(figures), (line,), ratios=figures, goals=_GOALS)


def _land(path: str) -> None:
    year = timedelta(hours=HOURS)
    at = pa.array([FIRST + year * row / ROWS for row in range(ROWS)], pa.timestamp("us", "UTC"))
    write_deltalake(path, pa.table({"at": at, "id": pa.array(range(ROWS), pa.int64())}))


def _read(found: Published, warm: str) -> float:
    """Give the seconds until the rows of eight weeks are counted.

    Raises:
        ValueError: they are not as many as the source has.
    """
    first, last = (f"TIMESTAMP '{instant:%Y-%m-%d %H:%M:%S}'" for instant in _READ)
    within = f"at >= {first} AND at < {last}"
    with _session() as spark:
        expected = spark.read.format("delta").load(warm).where(within).count()
        began = time.monotonic()
        rows = found.read(hours.name, spark=spark).where(within).count()
        took = time.monotonic() - began
    if rows != expected:
        raise ValueError(rows, expected)
    return took


@contextmanager
def _session() -> Iterator[SparkSession]:
    spark = start_session(spark_settings(read_settings()))
    try:
        yield spark
    finally:
        spark.stop()


def main() -> None:
    """Measure it alone."""
    part = hours_part((RESULTS / "runs" / "hours").resolve())
    for line in (*part.lines, *part.compared):
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
