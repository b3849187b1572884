from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from backfill_assets.intervals.cadence import Cadence, Daily
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.warehouse.files.table_size import source_bytes
from backfill_assets_tests.warehouse.shop import DAILY, days

if TYPE_CHECKING:
    from pathlib import Path

WHOLE = Cadence(Unit.WHOLE)


def landed(path: Path, *, partitioned: bool) -> str:
    """Ten days of January, ten rows each."""
    rows = [(date(2024, 1, n), i) for n in range(1, 11) for i in range(10)]
    table = pa.table({"ds": [ds for ds, _ in rows], "n": [n for _, n in rows]})
    write_deltalake(str(path), table, partition_by=["ds"] if partitioned else None)
    return str(path)


def on_disk(path: str) -> int:
    from pathlib import Path  # noqa: PLC0415

    return sum(file.stat().st_size for file in Path(path).rglob("*.parquet"))


@pytest.mark.parametrize("partitioned", [True, False])
def test_some_cells_are_their_share_of_the_table(tmp_path: Path, *, partitioned: bool):
    path = landed(tmp_path / "t", partitioned=partitioned)
    cells = IntervalSet.of(days(2, 5))
    found = source_bytes(path, column="ds", cadence=DAILY, cells=cells)
    assert found == pytest.approx(on_disk(path) / 5, rel=0.01)


def test_without_a_time_or_cells_it_is_the_whole_table(tmp_path: Path):
    path = landed(tmp_path / "t", partitioned=True)
    whole = on_disk(path)
    assert source_bytes(path) == whole
    assert source_bytes(path, column="ds", cadence=WHOLE, cells=IntervalSet.of(days(1))) == whole
    unknown = source_bytes(path, column="elsewhere", cadence=DAILY, cells=IntervalSet.of(days(1)))
    assert unknown == whole


def test_cells_that_the_table_does_not_reach_cost_nothing(tmp_path: Path):
    path = landed(tmp_path / "t", partitioned=False)
    assert source_bytes(path, column="ds", cadence=DAILY, cells=IntervalSet.of(days(20))) == 0
    assert source_bytes(str(tmp_path / "none")) == 0


def test_a_file_is_measured_by_its_own_cells_whatever_its_times_are(tmp_path: Path):
    cadence = Daily(start="2024-01-01", tz="America/New_York")
    path = str(tmp_path / "t")
    clock = pa.array([datetime(2024, 1, 2, 1)], pa.timestamp("us"))  # noqa: DTZ001
    write_deltalake(path, pa.table({"at": clock}))
    whole = on_disk(path)
    beyond = pa.array([datetime(9999, 12, 31)], pa.timestamp("us"))  # noqa: DTZ001
    write_deltalake(path, pa.table({"at": beyond}), mode="append")

    day = IntervalSet.of([cadence.cell("2024-01-02")])

    assert source_bytes(path, column="at", cadence=cadence, cells=day) == whole


def test_an_older_delta_version_is_measured_as_it_was(tmp_path: Path):
    path = landed(tmp_path / "t", partitioned=False)
    before = source_bytes(path)
    write_deltalake(path, pa.table({"ds": [date(2024, 1, 1)], "n": [1]}), mode="append")
    assert source_bytes(path, delta_version=0) == before < source_bytes(path)
