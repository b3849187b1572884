"""`make demo` fills as every other command does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import typer

from backfill_assets.cli.verbs import demo

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.engine.project.run_context import RunContext


def test_the_demo_fills_under_the_settings_of_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("BACKFILL_ATTEMPTS", "7")
    filled: list[RunContext] = []
    monkeypatch.setattr(demo, "_land", lambda *_: None)
    monkeypatch.setattr(demo, "fill_cells", lambda run, *_: filled.append(run))

    with pytest.raises(typer.Exit):  # nothing is filled here
        demo.demo(events=1)

    (run,) = filled
    assert run.project.batch_policy.attempts == 7
