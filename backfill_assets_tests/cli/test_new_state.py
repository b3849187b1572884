"""A state begins where something is written for the first time, and never beside the tables of another one."""

from __future__ import annotations

from shutil import rmtree
from typing import TYPE_CHECKING

import pytest

from backfill_assets import resolve
from backfill_assets.reading import NotPublishedError
from backfill_assets.warehouse.files.tables import TablesWithoutStateError

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


@pytest.fixture(autouse=True)
def _no_state(shop: Prepared) -> None:
    rmtree(shop.data)


LOOKS = (
    ("status",),
    ("why", "toy.sales", "2024-01-28"),
    ("why-not", "toy.sales", "2024-01-28"),
    ("batches",),
    ("history", "toy.sales"),
    ("audits",),
    ("audit",),
    ("map",),
    ("metrics",),
    ("resolve", "toy.sales"),
    ("views", "--for", "duckdb"),
    ("limit",),
    ("envs",),
    ("iceberg", "list"),
    ("results", "list"),
    ("show", "p1"),
    ("checklist", "p1"),
    ("aftercare",),
    ("approvals", "p1"),
)
WRITES = ("limit", "all", "3")


@pytest.mark.parametrize("look", LOOKS, ids=" ".join)
def test_a_verb_that_only_looks_makes_neither_a_state_nor_a_data_folder(
    shop: Prepared, backfill: Backfill, monkeypatch: pytest.MonkeyPatch, look: tuple[str, ...]
):
    monkeypatch.delenv("BACKFILL_CACHE_DIR")  # then it would lie in the data folder

    ended = backfill(*look)

    assert "is new" not in ended.err
    assert not shop.data.exists()


def test_a_verb_that_writes_says_that_its_state_is_new(shop: Prepared, backfill: Backfill):
    first, second = backfill(*WRITES), backfill(*WRITES)

    assert first.err == f"the state at {shop.data}/state.db is new: no table is known to it yet\n"
    assert (first.code, second.code, second.err) == (0, 0, "")


@pytest.fixture
def elsewhere(shop: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a setting looks for the state, in vain: tables that one has written are there."""
    for version in ("toy__sales__1", "toy__returns__2"):
        (shop.data / "tables" / "toy" / version / "_delta_log").mkdir(parents=True)
    monkeypatch.setenv("BACKFILL_STATE_URL", f"sqlite:///{tmp_path}/stat.db")
    return tmp_path / "stat.db"


@pytest.mark.parametrize("asked", [("run",), ("status",), WRITES], ids=" ".join)
def test_beside_tables_of_another_state_none_is_begun(
    shop: Prepared, backfill: Backfill, elsewhere: Path, asked: tuple[str, ...]
):
    ended = backfill(*asked)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(
        f"error: there is no state at {elsewhere}, but {shop.data} holds tables that a state has "
        "written: toy/toy__returns__2 and 1 more; expected the state that belongs to them. Correct "
        "BACKFILL_STATE_URL"
    )
    assert not elsewhere.exists()


def test_a_source_that_others_have_landed_below_tables_is_not_taken_for_a_table_of_a_state(
    shop: Prepared, backfill: Backfill
):
    (shop.data / "tables" / "raw" / "orders" / "_delta_log").mkdir(parents=True)

    assert backfill("status").code == 0
    assert backfill(*WRITES).code == 0


@pytest.mark.parametrize("asked", [("status",), WRITES], ids=" ".join)
def test_where_it_cannot_be_seen_whether_there_are_tables_no_state_is_begun(
    shop: Prepared, backfill: Backfill, asked: tuple[str, ...]
):
    shop.data.mkdir()
    (shop.data / "tables").write_text("no folder")

    ended = backfill(*asked)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"error: the tables below {shop.data} can't be listed: ")
    assert not (shop.data / "state.db").exists()
    assert "backfill_state_up 0.0" in backfill("metrics").lines


def test_a_monitor_is_told_that_a_state_is_lost(backfill: Backfill, elsewhere: Path):
    ended = backfill("metrics")

    assert ended.code == 0
    assert "backfill_state_up 0.0" in ended.lines
    assert str(elsewhere) in ended.err


def test_a_state_is_rebuilt_beside_the_tables_that_have_lost_theirs(
    backfill: Backfill, elsewhere: Path
):
    assert backfill("state", "rebuild").code == 0

    assert elsewhere.exists()
    assert backfill("status").code == 0


def test_a_rebuild_that_fails_leaves_no_empty_state_beside_the_tables(
    shop: Prepared, backfill: Backfill, elsewhere: Path
):
    log = shop.data / "tables" / "toy" / "toy__sales__1" / "_delta_log"
    (log / f"{0:020d}.json").write_text("{")

    failed = backfill("state", "rebuild")

    assert failed.code == 1
    assert "is damaged" in failed.err
    assert not elsewhere.exists()


def test_reading_makes_no_state(shop: Prepared):
    with pytest.raises(NotPublishedError):
        resolve("toy.sales", env="prod")

    assert not shop.data.exists()


@pytest.mark.usefixtures("elsewhere")
def test_reading_says_that_the_state_of_the_tables_is_not_there():
    with pytest.raises(TablesWithoutStateError):
        resolve("toy.sales", env="prod")
