"""The audits of the sample models are tested themselves: on the demo's data, filled as a person fills it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.pipelines.catalog import MODELS
from backfill_assets_tests.spark import jars_dir

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [pytest.mark.spark, pytest.mark.story]

CHECKOUT = Path(__file__).resolve().parents[2]
DEFECTS, STOPPED = 200, 0.9


@pytest.fixture
def python(tmp_path: Path) -> Callable[..., str]:
    """Run a command of Python on a project of its own, and give what it prints."""
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(CHECKOUT / "dagster.yaml", home)
    places = {
        "BACKFILL_DATA_DIR": str(tmp_path / "data"),
        "BACKFILL_JARS_DIR": str(jars_dir().resolve()),
        "DAGSTER_HOME": str(home),
    }

    def run(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", *words],
            cwd=CHECKOUT, env={**os.environ, **places}, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_sample_models_stop_nine_of_ten_planted_defects_before_the_commit(
    python: Callable[..., str],
):
    python("backfill_assets.cli.verbs.demo")
    found: dict[str, list[dict[str, Any]]] = {}
    for model in MODELS:
        told = python("backfill_assets.cli.app", "audit", "--mutate", model.name, "--json")
        found[model.name] = json.loads(told)["defects"]
    every = [defect for defects in found.values() for defect in defects]
    stopped = [defect for defect in every if defect["stopped_by"]]
    assert len(every) >= DEFECTS
    assert len(stopped) >= STOPPED * len(every), [
        defect for defect in every if not defect["stopped_by"]
    ]
