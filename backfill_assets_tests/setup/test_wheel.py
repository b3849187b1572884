"""From an installed wheel, in an empty folder: the README's own model, a new project, a package that tests itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from deltalake import DeltaTable

from backfill_assets_tests.spark import jars_dir

if TYPE_CHECKING:
    pass

pytestmark = [pytest.mark.story, pytest.mark.spark]

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SECTION = README.partition("## Your own models\n")[2].partition("\n## ")[0]


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a bare environment, where `pip` installs what the lock names and nothing older.

    It has jars of its own, since a class archive fits one environment.
    """
    folder = tmp_path_factory.mktemp("bare")
    uv = _uv()
    subprocess.run([uv, "venv", "-q", "-p", sys.executable, str(folder)], check=True)
    pip = folder / "bin" / "pip"
    options = f"--python {folder}/bin/python --constraint {ROOT}/requirements.lock -q"
    pip.write_text(f'#!/bin/sh\nverb="$1"; shift\nexec {uv} pip "$verb" {options} "$@"\n')
    pip.chmod(0o755)
    shutil.copytree(jars_dir(), folder / "jars", ignore=shutil.ignore_patterns("*.jsa"))
    return folder / "bin"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (found,) = folder.glob("*.whl")
    return found


def _uv() -> str:
    import importlib.util  # noqa: PLC0415 - a script, no module

    spec = importlib.util.spec_from_file_location("setup_env", ROOT / "scripts" / "setup_env.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.find_uv(ROOT)


def shell(folder: Path, programs: Path, lines: str) -> subprocess.CompletedProcess[str]:
    """Run lines of a shell as a person would in a folder, with the programs of a bare environment."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("BACKFILL_", "PYTHON", "DAGSTER_")) and name != "VIRTUAL_ENV"
    }
    jars = str(programs.parent / "jars")
    env = {**kept, "PATH": f"{programs}:{kept['PATH']}", "BACKFILL_JARS_DIR": jars}
    return subprocess.run(
        ["bash", "-ec", lines], cwd=folder, env=env, capture_output=True, text=True, check=False
    )


def test_the_own_model_of_the_readme_is_filled_word_for_word(
    tmp_path: Path, bin_folder: Path, wheel: Path
):
    (tmp_path / wheel.name).symlink_to(wheel)
    install, fill = re.findall(r"```sh\n(.+?)```", SECTION, re.DOTALL)
    catalog, landing = re.findall(r"```python\n(.+?)```", SECTION, re.DOTALL)

    installed = shell(tmp_path, bin_folder, install)
    assert installed.returncode == 0, installed.stderr
    (tmp_path / "shop" / "catalog.py").write_text(catalog)
    (tmp_path / "landing.py").write_text(landing)
    filled = shell(tmp_path, bin_folder, re.sub(r"^dagster dev.*$", "", fill, flags=re.MULTILINE))

    assert filled.returncode == 0, filled.stderr
    assert "prod: 1 model, 31 cells missing, 0 stale." in filled.stdout
    assert filled.stdout.endswith("prod: 31 cells filled, 0 batches failed, 0 cells missing.\n")
    (table,) = (tmp_path / "data" / "tables" / "shop").iterdir()
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == 31
    loads = "dagster definitions validate -m shop.catalog"
    assert (
        shell(tmp_path, bin_folder, f"export BACKFILL_CATALOG=shop.catalog\n{loads}").returncode
        == 0
    )


def test_a_new_project_runs_with_the_command_that_it_names(
    tmp_path: Path, bin_folder: Path, wheel: Path
):
    assert shell(tmp_path, bin_folder, f"pip install {wheel}").returncode == 0
    begun = shell(tmp_path, bin_folder, "backfill init shop")
    (command,) = re.findall(r"^Next: (.+)$", begun.stdout, re.MULTILINE)

    done = shell(tmp_path, bin_folder, command)

    assert done.returncode == 0, done.stderr
    assert "prod: 31 cells filled, 0 batches failed, 0 cells missing.\n" in done.stdout
    assert done.stdout.endswith("prod: 1 model, 0 cells missing, 0 stale.\n")


def test_a_package_of_its_own_tests_itself_with_what_the_wheel_brings(
    tmp_path: Path, bin_folder: Path, wheel: Path
):
    package = ROOT / "examples" / "own_tests"
    left_out = shutil.ignore_patterns("__pycache__", ".pytest_cache")
    shutil.copytree(package, tmp_path / "own_tests", ignore=left_out)
    installed = shell(tmp_path, bin_folder, f"pip install {wheel} pytest")
    assert installed.returncode == 0, installed.stderr

    tested = shell(tmp_path / "own_tests", bin_folder, "pytest -q -p no:cacheprovider")

    assert tested.returncode == 0, tested.stdout
    assert "3 passed" in tested.stdout
