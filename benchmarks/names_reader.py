"""Poll names while others publish: `names_reader.py ENGINE STATE SECONDS_BACK STOP`, until the file STOP is there.

Each line of the output is one poll as JSON: when it began and ended, and the generations that it saw.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table

NAMES = tuple(f"prod.bench.m{number:02d}" for number in range(12))


def main() -> None:
    """Poll until it is told to stop."""
    engine, state, back, stop = sys.argv[1], sys.argv[2], float(sys.argv[3]), Path(sys.argv[4])
    look = {"pyiceberg": _pyiceberg, "duckdb": _duckdb, "spark": _spark}[engine](state, back)
    _tell(json.dumps({"ready": engine}))
    while not stop.exists():
        began = time.time()  # noqa: TID251 - compared with what the state has recorded
        try:
            seen, error = look(), ""
        except Exception as failed:  # noqa: BLE001 - whatever a reader meets is counted
            seen, error = [], f"{type(failed).__name__}: {failed}"[:300]
        ended = time.time()  # noqa: TID251
        _tell(json.dumps({"began": began, "ended": ended, "seen": seen, "error": error}))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _tables(state: str) -> Callable[[], list[Table]]:
    from pyiceberg.catalog import load_catalog  # noqa: PLC0415

    reader = load_catalog(
        "backfill", type="sql", uri=f"sqlite:///{state}", init_catalog_tables="false"
    )
    return lambda: [reader.load_table(name) for name in NAMES]


def _pyiceberg(state: str, back: float) -> Callable[[], list[int]]:
    """Read every name as of one instant some seconds ago."""
    load = _tables(state)

    def look() -> list[int]:
        at = int((time.time() - back) * 1000)  # noqa: TID251
        return sorted(
            {
                generation
                for table in load()
                for generation in table.scan(
                    snapshot_id=_as_of(table, at), selected_fields=("generation",)
                )
                .to_arrow()["generation"]
                .to_pylist()
            }
        )

    return look


def _as_of(table: Table, at: int) -> int | None:
    found = table.snapshot_as_of_timestamp(at)
    return None if found is None else found.snapshot_id


def _duckdb(state: str, back: float) -> Callable[[], list[int]]:
    """Read each name with DuckDB, as it stands now: every one is whole, several may be of two moments."""
    del back
    import duckdb  # noqa: PLC0415

    load = _tables(state)

    def look() -> list[int]:
        with duckdb.connect() as connection:
            seen: set[int] = set()
            for number, table in enumerate(load()):
                connection.register(f"t{number}", table.scan().to_arrow())
                rows = connection.sql(f"SELECT DISTINCT generation FROM t{number}").fetchall()  # noqa: S608
                if len(rows) != 1:
                    raise AssertionError(f"{NAMES[number]} holds {rows}")
                seen.add(rows[0][0])
            return sorted(seen)

    return look


def _spark(state: str, back: float) -> Callable[[], list[int]]:
    """Read every name in one query of Spark, as of one instant some seconds ago."""
    from pyspark.sql import SparkSession  # noqa: PLC0415

    own = "spark.sql.catalog.backfill"
    settings: dict[str, bool | float | int | str | None] = {
        own: "org.apache.iceberg.spark.SparkCatalog",
        f"{own}.type": "jdbc",
        f"{own}.uri": f"jdbc:sqlite:{state}",
        f"{own}.warehouse": "/tmp",  # noqa: S108 - nothing is written
        f"{own}.jdbc.schema-version": "V1",
        f"{own}.cache-enabled": "false",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
    spark.sparkContext.setLogLevel("OFF")

    def look() -> list[int]:
        at = int(time.time() - back)  # noqa: TID251
        parts = (
            f"SELECT DISTINCT generation FROM backfill.{name} TIMESTAMP AS OF {at}"  # noqa: S608
            for name in NAMES
        )
        rows = spark.sql(" UNION ".join(parts)).collect()
        return sorted({row[0] for row in rows})

    look()
    return look


if __name__ == "__main__":
    main()
