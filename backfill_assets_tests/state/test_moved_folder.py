"""A data folder that was copied or moved with its state names its own tables, and leaves the old ones."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.ready import InputPin
from backfill_assets.state.store import Store
from backfill_assets_tests.state.building import NOON, Asked, write

if TYPE_CHECKING:
    from pathlib import Path

TABLE, ELSEWHERE = "tables/web/orders__v1", "s3://lake/events"


def opened(folder: Path) -> Store:
    return Store.open(f"sqlite:///{folder / 'state.db'}", clock=lambda: NOON)


def filled(folder: Path) -> None:
    (folder / TABLE).mkdir(parents=True)
    pins = (
        InputPin("web.raw", "", f"{folder}/raw", 3),
        InputPin("web.events", "", ELSEWHERE, 3),
    )
    with opened(folder) as store:
        at = Pointer("prod", "orders", "print-orders", "orders__v1", -1)
        store.ensure_pointer(at, f"{folder}/{TABLE}")
        write(store, store.open_batch(Asked(sources=pins).request))


def paths(folder: Path) -> tuple[str, list[str]]:
    with opened(folder) as store:
        (batch,) = store.batches()
        return store.version_path("orders__v1"), [one.path for one in batch.inputs]


@pytest.mark.parametrize("move", [shutil.copytree, shutil.move], ids=["copied", "moved"])
def test_a_folder_that_was_copied_or_moved_works_where_it_stands(tmp_path: Path, move):  # noqa: ANN001
    old, new = tmp_path / "it's old", tmp_path / "new"
    filled(old)
    move(old, new)
    assert paths(new) == (f"{new}/{TABLE}", [f"{new}/raw", ELSEWHERE])
    assert paths(new) == (f"{new}/{TABLE}", [f"{new}/raw", ELSEWHERE])
    if old.exists():
        assert paths(old) == (f"{old}/{TABLE}", [f"{old}/raw", ELSEWHERE])


def test_a_state_that_lies_elsewhere_than_its_tables_names_them_as_before(tmp_path: Path):
    old, new = tmp_path / "old", tmp_path / "new"
    filled(old)
    new.mkdir()
    shutil.copy(old / "state.db", new / "state.db")
    assert paths(new)[0] == f"{old}/{TABLE}"
