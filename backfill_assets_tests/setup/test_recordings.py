"""What the recordings show still happens: each is played again, and every command ends as its story says."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STORIES = ("first-hour", "three-nights")

pytestmark = pytest.mark.story


@pytest.mark.parametrize("story", STORIES)
def test_a_story_ends_as_it_was_recorded(story: str):
    commands = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    own = {"PATH": commands, "BACKFILL_JARS_DIR": str(ROOT / ".spark-jars")}
    script = [sys.executable, str(ROOT / "scripts" / "record.py")]
    played = subprocess.run(
        [*script, str(ROOT / "docs" / "examples" / f"{story}.story")],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        check=False,
    )
    assert played.returncode == 0, played.stdout + played.stderr
    assert "Traceback" not in played.stdout


@pytest.mark.parametrize("story", STORIES)
def test_a_recording_is_of_its_story(story: str):
    told = (ROOT / "docs" / "examples" / f"{story}.story").read_text().splitlines()
    shown = (ROOT / "docs" / "examples" / f"{story}.txt").read_text().splitlines()
    remarks = [line for line in told if line.startswith("# ") and not line.startswith("# exit")]
    assert [line for line in shown if line.startswith("# ")] == remarks
    commands = sum(line.startswith("$ ") for line in shown)
    assert commands == sum(line.startswith("[") and line.endswith(" s]") for line in shown)
