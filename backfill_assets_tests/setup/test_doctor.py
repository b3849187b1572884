from __future__ import annotations

import ast
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

OPENJDK = 'openjdk version "{}" 2025-04-15'


def examined(root: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(root / "scripts" / "doctor.py")],
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )


def java_saying(version: str) -> str:
    return f"echo 'Picked up JAVA_TOOL_OPTIONS: -Dx=17' >&2; echo '{OPENJDK.format(version)}' >&2"


@pytest.mark.parametrize("version", ["17.0.15", "21", "21.0.4"])
def test_java_17_and_21_fit(root: Path, program: Callable[[str, str], Path], version: str):
    java = program("java", java_saying(version))

    done = examined(root, PATH=str(java.parent))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("version", "found"), [("1.8.0_392", "8"), ("11.0.2", "11"), ("25.0.1", "25"), ("25-ea", "25")]
)
def test_another_java_is_named_with_what_is_expected_and_how_to_get_it(
    root: Path, program: Callable[[str, str], Path], version: str, found: str
):
    java = program("java", java_saying(version))

    done = examined(root, PATH=str(java.parent))

    assert done.returncode == 1
    assert f"Wrong Java: found {found} ({java}), expected 17 or 21." in done.stderr
    assert "JAVA_HOME" in done.stderr or "Install Java 17 or 21" in done.stderr


def test_no_java_at_all_is_said(root: Path, tmp_path: Path):
    done = examined(root, PATH=str(tmp_path))

    assert done.returncode == 1
    assert "No Java: found no `java` on PATH, and JAVA_HOME is not set." in done.stderr


def test_java_home_wins_over_the_path_as_it_does_in_spark(
    root: Path, tmp_path: Path, program: Callable[[str, str], Path]
):
    on_path = program("java", java_saying("17.0.15"))
    home = tmp_path / "jdk-11"
    (home / "bin").mkdir(parents=True)
    named = home / "bin" / "java"
    named.write_text(f"#!/bin/sh\n{java_saying('11.0.2')}\n")
    named.chmod(0o755)

    done = examined(root, PATH=str(on_path.parent), JAVA_HOME=str(home))

    assert done.returncode == 1
    assert f"found 11 ({named}, named by JAVA_HOME)" in done.stderr


def test_a_java_home_without_a_java_is_said(root: Path, tmp_path: Path):
    done = examined(root, PATH=str(tmp_path), JAVA_HOME=str(tmp_path / "gone"))

    assert done.returncode == 1
    assert f"JAVA_HOME is {tmp_path / 'gone'}, but" in done.stderr


def test_a_java_that_is_only_a_stub_is_quoted(root: Path, program: Callable[[str, str], Path]):
    java = program("java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")

    done = examined(root, PATH=str(java.parent))

    assert done.returncode == 1
    assert "Broken Java" in done.stderr
    assert "Unable to locate a Java Runtime." in done.stderr


@pytest.mark.parametrize("version", [(3, 6), (3, 10), (3, 14)])
def test_another_python_is_named_with_what_is_expected(
    script: Callable[[str], ModuleType], version: tuple[int, int]
):
    problem = script("doctor").python_problem(version, "/opt/python")

    found = f"found {version[0]}.{version[1]} (/opt/python)"
    assert f"Wrong Python: {found}, expected 3.11, 3.12 or 3.13." in problem


@pytest.mark.parametrize("version", [(3, 11), (3, 12), (3, 13)])
def test_the_pythons_of_the_project_fit(
    script: Callable[[str], ModuleType], version: tuple[int, int]
):
    assert script("doctor").python_problem(version, "/opt/python") == ""


def test_a_python_too_old_for_the_project_can_still_read_the_doctor(root: Path):
    source = (root / "scripts" / "doctor.py").read_text()

    assert ast.parse(source, feature_version=(3, 6))
    assert "\nfrom __future__" not in source
