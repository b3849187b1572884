"""Projects in temporary folders, and the command in this process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.testing import (
    DEATHS,
    FAILURES,
    UnexpectedEndError,
    dying_at,
    failing_at,
    temporary_project,
)

OWN = Path(__file__).resolve().parents[2] / "examples" / "own_tests" / "shop"


def test_a_project_has_data_and_variables_of_its_own_until_the_block_ends(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("BACKFILL_STATE_URL", "sqlite:////somewhere/else.db")
    before, path, folder = dict(os.environ), list(sys.path), Path.cwd()

    with temporary_project(OWN, catalog="shop.catalog") as project:
        assert Path.cwd() == project.folder
        assert "BACKFILL_STATE_URL" not in os.environ
        assert "28 cells" not in project.do("status").out
        project.do("limit", "all", "2")
        assert (project.data / "state.db").exists()

    assert (dict(os.environ), sys.path, Path.cwd()) == (before, path, folder)
    assert not project.folder.exists()
    assert "shop.catalog" not in sys.modules


@pytest.mark.parametrize("named", ["elsewhere", "absolute"])
def test_what_is_published_is_read_where_commands_write_also_in_another_data_folder(
    named: str, tmp_path: Path
):
    folder = str(tmp_path) if named == "absolute" else named
    with temporary_project(OWN, catalog="shop.catalog", BACKFILL_DATA_DIR=folder) as project:
        project.do("limit", "all", "2")

        assert (project.data / "state.db").exists()
        assert Path(project.settings.data_root) == project.data
        assert not (project.folder / "data").exists()


def test_a_command_that_ends_otherwise_is_shown_whole():
    with temporary_project(OWN, catalog="shop.catalog") as project:
        with pytest.raises(
            UnexpectedEndError, match=r"expected exit code 0(.|\n)*-> 1(.|\n)*error:"
        ):
            project.do("why", "shop.unknown", "2024-03-04")
        ended = project.backfill("why", "shop.unknown", "2024-03-04")

    assert ended.transcript.startswith("$ backfill why shop.unknown 2024-03-04\nerror: ")
    assert ended.transcript.endswith("[exit 1]\n")


def test_an_edit_is_read_by_the_next_command_and_has_to_fit_one_place():
    with temporary_project(OWN, catalog="shop.catalog") as project:
        assert "14" in project.do("status", "--select", "shop.revenue").out
        difference = project.edit(
            "shop/catalog.py",
            'cadence=Daily(start="2024-03-04", end="2024-03-17")',
            'cadence=Daily(start="2024-03-04", end="2024-03-10")',
        )
        assert "7 cells missing" in project.do("status", "--select", "shop.revenue").said
        with pytest.raises(RequestError, match=r"shop/catalog.py has 2 times: ordered_on"):
            project.edit("shop/catalog.py", "ordered_on <", "x")

    assert '-    cadence=Daily(start="2024-03-04", end="2024-03-17"),' in difference


def test_steps_that_are_not_there_are_told_those_that_are():
    with pytest.raises(RequestError, match=f"{next(iter(DEATHS))}.*record"), dying_at("nowhere"):
        pass
    with pytest.raises(RequestError, match=", ".join(FAILURES)), failing_at("nowhere"):
        pass


def test_importing_it_imports_no_pytest():
    code = "import sys, backfill_assets.testing; sys.exit('pytest' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
