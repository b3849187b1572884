from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RECORDING_UV = 'echo "$1 $2" >> "$UV_CALLS"'


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    place = tmp_path / "checkout"
    (place / "scripts").mkdir(parents=True)
    shutil.copy(root / "scripts" / "setup_env.py", place / "scripts")
    (place / "requirements.lock").write_text("a==1 --hash=sha256:00\n")
    (place / "pyproject.toml").write_text('[project]\nname = "p"\n')
    return place


def set_up(checkout: Path, uv: Path) -> subprocess.CompletedProcess[str]:
    path = f"{uv.parent}{os.pathsep}{os.defpath}"
    return subprocess.run(
        [sys.executable, str(checkout / "scripts" / "setup_env.py")],
        env={"PATH": path, "UV_CALLS": str(checkout / "calls")},
        capture_output=True,
        text=True,
        check=False,
    )


def calls(checkout: Path) -> list[str]:
    record = checkout / "calls"
    made = record.read_text().splitlines() if record.exists() else []
    record.unlink(missing_ok=True)
    return made


def test_the_lock_is_installed_once(checkout: Path, program: Callable[[str, str], Path]):
    uv = program("uv", RECORDING_UV)

    first, made_first = set_up(checkout, uv), calls(checkout)
    second, made_second = set_up(checkout, uv), calls(checkout)

    assert (first.returncode, second.returncode) == (0, 0)
    assert made_first == ["pip sync", "pip install"]
    assert made_second == []
    assert (checkout / ".venv" / "bin" / "python").exists()


@pytest.mark.parametrize("name", ["requirements.lock", "pyproject.toml"])
def test_a_changed_lock_or_project_is_installed_again(
    checkout: Path, program: Callable[[str, str], Path], name: str
):
    uv = program("uv", RECORDING_UV)
    set_up(checkout, uv)
    calls(checkout)
    with (checkout / name).open("a") as file:
        file.write("# changed\n")

    done = set_up(checkout, uv)

    assert done.returncode == 0
    assert calls(checkout) == ["pip sync", "pip install"]


def test_an_environment_whose_python_is_gone_is_made_again(
    checkout: Path, program: Callable[[str, str], Path]
):
    uv = program("uv", RECORDING_UV)
    set_up(checkout, uv)
    calls(checkout)
    (checkout / ".venv" / "bin" / "python").unlink()

    done = set_up(checkout, uv)

    assert done.returncode == 0
    assert calls(checkout) == ["pip sync", "pip install"]


def test_packages_that_cannot_be_fetched_are_said_and_tried_again_next_time(
    checkout: Path, program: Callable[[str, str], Path]
):
    broken = program("uv", f"{RECORDING_UV}; echo 'dns error' >&2; exit 2")

    done, tried = set_up(checkout, broken), calls(checkout)
    again = set_up(checkout, program("uv", RECORDING_UV))

    assert done.returncode == 1
    assert tried == ["pip sync"]
    assert "Could not install the packages: uv ended with 2." in done.stderr
    assert "can't reach its Python package index" in done.stderr
    assert again.returncode == 0
    assert calls(checkout) == ["pip sync", "pip install"]
