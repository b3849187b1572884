"""What goes wrong in backfills elsewhere: each way has a test, which a table of docs/soundness.md names."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.project.run_context import PublishedCells
from backfill_assets.intervals import Daily
from backfill_assets.models.kind import IncrementalByTimeRange, IncrementalByUniqueKey
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import Environment
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import kept, row, told

if TYPE_CHECKING:
    from backfill_assets.models.kind import Kind
    from backfill_assets_tests.engine.world import World

ROOT = Path(__file__).resolve().parents[2]
MODES = (
    "duplicate rows after reruns",
    "wrong timestamp boundary",
    "partial history exposed",
    "business logic without a version",
    "late data ignored",
    "source history missing",
    "compute overload",
    "no owner of the result",
    "INSERT-only backfills",
    "publishing before validation",
    "no rollback",
    "a stale consumer list",
)
VISITS = "web.visits"
FOUR_DAYS = Daily(start="2024-01-07")
ROWS = [row(number, id_) for number, id_ in product(range(7, 11), (1, 2))]
DEARER = [row(number, id_, 2.0) for number, id_ in product(range(7, 11), (1, 2))]
KINDS = [IncrementalByTimeRange("ds"), IncrementalByUniqueKey("ds")]


@pytest.mark.parametrize("kind", KINDS, ids=["replaced", "merged"])
def test_a_range_that_is_built_again_and_again_holds_each_row_once(world: World, kind: Kind):
    world.store.environments.save_environment(Environment("dev", protected=False))
    world.environment = "dev"
    graph = a_graph(a_model(cadence=FOUR_DAYS, kind=kind, batch_size=2))
    world.land(a_source(), *ROWS)
    world.fill(graph)
    for rows in (ROWS, DEARER, DEARER):
        world.land(a_source(), *rows)
        rebuilt = told(world.fill(graph, published=PublishedCells.REBUILT)[VISITS])
        assert rebuilt == ["committed"] * 2
        assert world.rows(VISITS) == kept(*rows)


@pytest.mark.parametrize("kind", KINDS, ids=["replaced", "merged"])
def test_a_range_that_is_restated_again_and_again_holds_each_row_once(world: World, kind: Kind):
    graph = a_graph(a_model(cadence=FOUR_DAYS, kind=kind, batch_size=2))
    world.land(a_source(), *ROWS)
    world.fill(graph)
    for rows in (ROWS, DEARER):
        world.land(a_source(), *rows)
        Plans(world).published(graph, restate=(Restatement(VISITS),))
        assert world.rows(VISITS) == kept(*rows)


def test_each_way_has_a_row_and_each_test_that_a_row_names_is_there():
    rows = table()
    tests = {
        name
        for file in (ROOT / "backfill_assets_tests").rglob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }

    assert tuple(rows) == MODES
    for mode, named in rows.items():
        assert named, f"{mode}: no test is named"
        assert set(named) <= tests, f"{mode}: {set(named) - tests} is not there"


def table() -> dict[str, list[str]]:
    """The tests of each row of the table."""
    page = (ROOT / "docs" / "soundness.md").read_text(encoding="utf-8")
    section = page.partition("## What goes wrong elsewhere\n")[2].partition("\n## ")[0]
    found = re.findall(r"^\| (.+?) \| .+? \| (.+?) \|$", section, re.MULTILINE)
    return {mode: re.findall(r"`(test_\w+)`", tests) for mode, tests in found if "test_" in tests}
