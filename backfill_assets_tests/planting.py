"""Plant bad rows: in a source before anything reads it, or in published data behind our back."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from backfill_assets import resolve
from backfill_assets.settings import Settings

if TYPE_CHECKING:
    from backfill_assets.models.source import Source

_ROW = pa.schema([("ds", pa.date32()), ("shop", pa.string()), ("amount", pa.decimal128(18, 2))])


def sell(root: str, source: Source, day: str, amount: int) -> None:
    """Append a row to a source of sales or returns."""
    row = {"ds": date.fromisoformat(day), "shop": "planted", "amount": Decimal(amount)}
    write_deltalake(f"{root}/{source.path}", pa.Table.from_pylist([row], _ROW), mode="append")


def plant(root: str, model: str, day: str) -> None:
    """Turn the published amounts of a day negative, in a commit that prod does not point at."""
    path, _ = resolve(model, settings=Settings(data_dir=root))
    DeltaTable(path).update(updates={"amount": "-1"}, predicate=f"ds = '{day}'")


def publish_head(root: str, model: str) -> None:
    """Point prod at whatever the table holds now: what no batch of ours can do."""
    path, _ = resolve(model, settings=Settings(data_dir=root))
    version = DeltaTable(path).version()
    with closing(sqlite3.connect(f"{root}/state.db")) as state, state:
        state.execute("UPDATE pointers SET delta_version = ? WHERE model = ?", (version, model))
