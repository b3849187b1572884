"""The sources of the histories: rows that are appended, updated and deleted, in Delta and in plain Python."""

from __future__ import annotations

import shutil
from collections import defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from backfill_assets_tests.engine.world import arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from random import Random

    from backfill_assets.models.source import Source
    from backfill_assets_tests.histories.oracle import When

SALES = "shop.sales"


@dataclass
class Sales:
    """What was sold, by the day; or who visited, by the hour.

    Attributes:
        root: the data folder.
        source: how the table is declared.
        rows: day or hour and amount of each sale, by its id.
        had: the days or hours that had sales at any time.
    """

    root: Path
    source: Source
    rows: dict[int, tuple[When, int]] = field(default_factory=dict[int, "tuple[When, int]"])
    had: set[When] = field(default_factory=set["When"])
    _given: int = 0

    @property
    def path(self) -> str:
        """Where the table lies."""
        return f"{self.root}/{self.source.path}"

    @property
    def days(self) -> list[When]:
        """The days or hours that have sales, in order."""
        return sorted({day for day, _ in self.rows.values()})

    @property
    def refused(self) -> list[int]:
        """The sales that no audit lets pass."""
        return [one for one, (_, amount) in self.rows.items() if amount < 0]

    def by_day(self) -> dict[When, dict[int, int]]:
        """Give the amounts of each day or hour, by id."""
        found: dict[When, dict[int, int]] = defaultdict(dict)
        for one, (day, amount) in self.rows.items():
            found[day][one] = amount
        return found

    def of(self, day: When) -> list[int]:
        """Give the sales of a day or hour."""
        return [one for one, (other, _) in self.rows.items() if other == day]

    def sell(self, day: When, amounts: Iterable[int]) -> None:
        """Append sales."""
        new = {self._given + number: (day, amount) for number, amount in enumerate(amounts, 1)}
        self._given += len(new)
        self.had.add(day)
        self.rows |= new
        write_deltalake(self.path, self._table(new), mode="append")

    def _table(self, rows: Mapping[int, tuple[When, int]]) -> pa.Table:
        columns = {column.name: column.dtype for column in self.source.schema}
        return arrow(columns, [(on, one, amount) for one, (on, amount) in rows.items()])

    def sell_some(self, day: When, number: int, random: Random) -> None:
        """Append sales of random amounts."""
        self.sell(day, [random.randint(1, 9) for _ in range(number)])

    def correct(self, sale: int) -> None:
        """Let a sale be worth three more."""
        DeltaTable(self.path).update({"amount": "amount + 3"}, predicate=f"id = {sale}")
        day, amount = self.rows[sale]
        self.rows[sale] = (day, amount + 3)

    def move(self, sale: int, day: When) -> None:
        """Let a sale be one of another day."""
        DeltaTable(self.path).update({"ds": f"DATE '{day}'"}, predicate=f"id = {sale}")
        self.rows[sale] = (day, self.rows[sale][1])

    def delete(self, sale: int) -> None:
        """Take a sale away."""
        DeltaTable(self.path).delete(f"id = {sale}")
        del self.rows[sale]

    def overwrite(self, day: When) -> None:
        """Write all rows of a day or hour again, in one commit."""
        rows = {one: row for one, row in self.rows.items() if row[0] == day}
        # Of a checkpointed table deltalake compares no instant with a TIMESTAMP, which is one of nanoseconds.
        kind = 'Timestamp(Microsecond, Some("UTC"))' if isinstance(day, datetime) else "Date32"
        predicate = f"{self.source.time_column} = arrow_cast('{day}', '{kind}')"
        write_deltalake(self.path, self._table(rows), mode="overwrite", predicate=predicate)

    def go_back(self, version: int) -> None:
        """Let the table be what it was at an earlier version."""
        earlier = DeltaTable(self.path, version=version).to_pyarrow_table().to_pylist()
        DeltaTable(self.path).restore(version)
        self.rows = {row["id"]: (row[self.source.time_column], row["amount"]) for row in earlier}

    def make_anew(self) -> None:
        """Let another table with the same rows lie where the table lay."""
        shutil.rmtree(self.path)
        write_deltalake(self.path, self._table(self.rows))

    def move_table(self, path: str) -> None:
        """Let the table lie elsewhere, and be declared there."""
        shutil.move(self.path, f"{self.root}/{path}")
        self.source = replace(self.source, path=path)
