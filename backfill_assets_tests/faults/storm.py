"""`python -m backfill_assets_tests.faults.storm PATH NAME COUNT`: many small commits in a tight loop.

Two processes at once, each with a JVM of its own, on one table: a log store that lets both believe
that they made a commit would lose rows.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from backfill_assets_tests.faults.ledger import CHECKOUT
from backfill_assets_tests.spark import start_test_session

if TYPE_CHECKING:
    from collections.abc import Iterator


def commit_all(path: str, name: str, count: int) -> None:
    """Append one row per commit, and say each one that went through."""
    spark = start_test_session(Path(path).with_name(f"spark-{name}"))
    for number in range(count):
        row = f"SELECT '{name}' AS who, {number} AS number"
        spark.sql(row).coalesce(1).write.format("delta").mode("append").save(path)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()
    spark.stop()


def storm(folder: Path, count: int) -> Iterator[str]:
    """Let two processes commit at once, and say what was lost or doubled."""
    path = folder / "table"
    command = [sys.executable, "-m", "backfill_assets_tests.faults.storm", str(path)]
    folder.mkdir(parents=True)
    empty = pa.table({"who": pa.array([], pa.string()), "number": pa.array([], pa.int32())})
    write_deltalake(path, empty)  # who creates it first is another question
    logs = {name: folder / f"{name}.log" for name in ("one", "other")}
    started = {
        name: subprocess.Popen([*command, name, str(count)], stdout=log.open("wb"), cwd=CHECKOUT)
        for name, log in logs.items()
    }
    for name, process in started.items():
        if process.wait() != 0:
            yield f"process '{name}' ended with {process.returncode}"
    said = {(name, int(line)) for name, log in logs.items() for line in log.read_text().split()}
    table = DeltaTable(str(path))
    rows = [(row["who"], row["number"]) for row in table.to_pyarrow_table().to_pylist()]
    twice = [row for row, times in Counter(rows).items() if times > 1]
    if twice:
        yield f"{len(twice)} rows are there twice, first {twice[0]}"
    if said - set(rows):
        yield f"{len(said - set(rows))} commits were lost, first {min(said - set(rows))}"
    if table.version() < len(said):
        yield f"{table.version()} versions for {len(said)} commits"


if __name__ == "__main__":
    commit_all(sys.argv[1], sys.argv[2], int(sys.argv[3]))
