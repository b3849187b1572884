"""What the state, the caches and plans are kept in is for its owner alone, whatever the umask."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.cli.conftest import Backfill, backfill, shop
from backfill_assets_tests.cli.prepared import opened_run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets_tests.cli.prepared import Prepared

__all__ = ["backfill", "shop"]


@pytest.fixture
def careless() -> Iterator[None]:
    """Nobody's umask protects anything."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("careless")
def test_state_caches_and_plans_are_for_their_owner_alone(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKFILL_CACHE_DIR", str(shop.data / ".cache"))
    shop.fill("toy.sales", "2024-01-28", "2024-01-31")
    out = shop.data / "plan.json"
    done = backfill("plan", "--restate", "toy.sales:2024-01-28", "--out", str(out))
    assert done.code == 2, done.err
    with opened_run("prod") as run, closing(sqlite3.connect(shop.data / "state.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM limits").fetchall()  # who reads keeps the side files there
        run.store.limits.set_limit("all", 3, "ada")
        found = {path: path.stat().st_mode & 0o777 for path in _files(shop.data)}
    names = {
        path.name.partition("-")[0] if path.parent.name == ".cache" else path.name for path in found
    }
    assert {"state.db", "state.db-wal", "state.db-shm", "plan.json", "manifest"} <= names
    assert {path: oct(mode) for path, mode in found.items() if mode != 0o600} == {}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
