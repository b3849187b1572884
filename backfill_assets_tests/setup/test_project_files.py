from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from typing import TYPE_CHECKING

import dagster as dg
import pytest
import yaml

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def lock(root: Path) -> str:
    return (root / "requirements.lock").read_text()


def test_the_lock_names_no_host(lock: str):
    assert not re.search(r"https?:|--index|--extra-index|--find-links", lock)


def test_every_requirement_of_the_lock_has_hashes(lock: str):
    entries = [entry for entry in re.split(r"\n(?=\w)", lock) if entry.strip()]

    unhashed = [entry.splitlines()[0] for entry in entries if "--hash=sha256:" not in entry]
    assert unhashed == []


def test_the_lock_holds_every_dependency_of_the_project(root: Path, lock: str):
    project = tomllib.loads((root / "pyproject.toml").read_text())
    groups = project["dependency-groups"].values()
    declared = [*installed(root), *(name for group in groups for name in group)]
    names = {re.split(r"[\[<>=]", line)[0] for line in declared}

    assert names - set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)) == set()


def installed(root: Path) -> list[str]:
    """What an installation of the project asks for, with every extra."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    return [*project["dependencies"], *(line for extra in extras for line in extra)]


def test_an_installation_asks_for_ranges_and_the_lock_alone_for_exact_versions(root: Path):
    assert [line for line in installed(root) if "==" in line or ">=" not in line] == []


def test_what_only_the_samples_need_is_an_extra(root: Path):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert not any("jafgen" in line for line in project["dependencies"])
    assert any("jafgen" in line for line in project["optional-dependencies"]["demo"])


def test_the_instance_lets_one_run_write_a_table_and_sends_no_telemetry(root: Path, tmp_path: Path):
    shutil.copy(root / "dagster.yaml", tmp_path)

    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        concurrency = instance.get_concurrency_config()
        telemetry = instance.telemetry_enabled

    assert concurrency.run_queue_config is not None
    assert concurrency.run_queue_config.max_concurrent_runs == 2
    assert concurrency.pool_config.default_pool_limit == 1
    assert str(concurrency.pool_config.pool_granularity) == "PoolGranularity.RUN"
    assert telemetry is False


def test_the_workspace_names_the_definitions_of_the_orchestration_room(root: Path):
    workspace = yaml.safe_load((root / "workspace.yaml").read_text())

    assert workspace["load_from"] == [
        {
            "python_module": {
                "module_name": "backfill_assets.orchestration.definitions",
                "attribute": "defs",
                "location_name": "backfill_assets",
            }
        }
    ]


def test_make_alone_lists_its_targets(root: Path):
    done = subprocess.run(
        ["make", "--no-print-directory", "-C", str(root)],
        capture_output=True,
        text=True,
        check=True,
    )

    listed = re.findall(r"^  make ([\w-]+)", done.stdout, re.MULTILINE)
    assert {"env", "demo", "ui", "audit", "test", "test-all", "check", "bench"} <= set(listed)


def test_the_sample_workflow_runs_commands_that_exist(root: Path):
    workflow = yaml.safe_load((root / "docs" / "examples" / "ci-workflow.yml").read_text())
    commands = [
        step["run"] for step in workflow["jobs"]["fill-and-audit"]["steps"] if "run" in step
    ]
    targets = re.findall(r"^([\w-]+):.*##", (root / "Makefile").read_text(), re.MULTILINE)

    assert [line for line in commands if line.startswith("make ")] == ["make env", "make audit"]
    assert {"env", "audit"} <= set(targets)
    assert (root / "scripts" / "materialize_range.sh").stat().st_mode & 0o111
