from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import dagster as dg
import pytest
import yaml
from deltalake import DeltaTable

from backfill_assets.orchestration.instance import BatchedInstance
from backfill_assets.settings import read_settings

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill

ROOT = Path(__file__).parents[2]


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, in which commands are given."""
    folder = tmp_path / "new"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_a_new_project_has_its_source_landed_and_names_the_next_command(
    empty: Path, backfill: Backfill
):
    ended = backfill("init", "shop")

    assert (ended.code, ended.err) == (0, "")
    assert ended.lines[:2] == [
        "In Dagster's UI, from that folder: export DAGSTER_HOME=$PWD && dagster dev",
        "Next: cd shop && backfill setup && backfill run && backfill status",
    ]
    assert DeltaTable(str(empty / "shop/data/sources/raw_orders")).to_pyarrow_table().num_rows == 62


def test_the_tests_of_a_new_project_pass(empty: Path, backfill: Backfill):
    backfill("init", "shop")

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=empty / "shop",
        capture_output=True,
        text=True,
        check=False,
    )

    assert "3 passed" in done.stdout, done.stdout


def test_a_new_project_lacks_every_cell_without_any_variable_being_set(
    empty: Path, backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    backfill("init", "shop")
    for name in ("BACKFILL_CATALOG", "BACKFILL_DATA_DIR"):
        monkeypatch.delenv(name)
    monkeypatch.chdir(empty / "shop")

    assert read_settings().catalog == "shop.catalog"
    assert backfill("status").lines[-1] == "prod: 1 model, 31 cells missing, 0 stale."


def test_dagster_loads_a_new_project_by_its_workspace(empty: Path, backfill: Backfill):
    backfill("init", "shop")

    done = subprocess.run(
        [Path(sys.executable).with_name("dagster"), "definitions", "validate"],
        cwd=empty / "shop",
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr


def test_dagster_has_the_queue_and_the_limits_of_a_checkout_in_a_new_project(
    empty: Path, backfill: Backfill
):
    backfill("init", "shop")

    settings = yaml.safe_load((empty / "shop/dagster.yaml").read_text())
    assert settings == yaml.safe_load((ROOT / "dagster.yaml").read_text())
    with dg.DagsterInstance.from_config(str(empty / "shop")) as instance:
        assert isinstance(instance, BatchedInstance)
        assert isinstance(instance.run_coordinator, dg.QueuedRunCoordinator)
    kept = {path.name for path in (empty / "shop").iterdir() if path.is_dir()}
    ignored = {*(empty / "shop/.gitignore").read_text().replace("/", "").splitlines()}
    assert kept - ignored == {"shop", "tests"}


def test_a_folder_that_holds_something_is_left_as_it_is(empty: Path, backfill: Backfill):
    (empty / "shop").mkdir()
    (empty / "shop" / "notes").write_text("mine")

    ended = backfill("init", "shop")

    assert ended.code == 1
    assert "is there already and not empty; name another project" in ended.err
    assert [path.name for path in (empty / "shop").iterdir()] == ["notes"]


def test_a_project_that_can_not_be_written_is_a_clear_error(empty: Path, backfill: Backfill):
    (empty / "shop").symlink_to(empty / "nowhere")

    ended = backfill("init", "shop")

    assert (ended.code, ended.out) == (1, "")
    assert "can't be written: " in ended.err
    assert "begin in a folder that you may write to" in ended.err


@pytest.mark.parametrize(
    "name",
    [
        *("Shop", "my-shop", "2shop", "_shop", "class", "tests", "../up", "shöp", ""),
        *("json", "pandas", "deltalake"),  # the package would hide what libraries import
    ],
)
def test_what_no_package_can_be_called_is_refused(empty: Path, backfill: Backfill, name: str):
    ended = backfill("init", name)

    assert ended.code == 1
    assert "can't be the name of a project's package; expected " in ended.err
    assert [*empty.iterdir()] == []
