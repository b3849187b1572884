"""What Dagster has lost, and is told again from the state: after a run was deleted, or an asset was wiped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dagster as dg
import pytest

from backfill_assets.engine.project.opening import open_run
from backfill_assets.models.graph import build_graph
from backfill_assets.orchestration.catching_up import report_ready
from backfill_assets.orchestration.resources import StateResource
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets_tests.toy import DAYS, MODELS, SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets_tests.orchestration.shop import Shop


def reported(shop: Shop) -> int:
    """How many cells a report tells Dagster of."""
    state = StateResource()
    loaded = Loaded.of(build_graph(MODELS, SOURCES))
    told = report_ready(shop.instance, open_run(state.project(loaded, "report"), PROD))
    state.store.close()
    return told


def delete_runs(instance: dg.DagsterInstance) -> None:
    for run in instance.get_runs():
        instance.delete_run(run.run_id)


def wipe(instance: dg.DagsterInstance) -> None:
    instance.wipe_assets([dg.AssetKey(["toy", name]) for name in ("sales", "shops")])


@pytest.mark.parametrize("lose", [delete_runs, wipe])
def test_cells_whose_events_a_person_has_deleted_are_reported_again_and_only_once(
    shop: Shop, lose: Callable[[dg.DagsterInstance], None]
):
    assert shop.fill("toy.sales", cells=DAYS[0]).success
    assert shop.fill("toy.shops").success
    assert reported(shop) == 0

    lose(shop.instance)

    assert reported(shop) == 2
    assert reported(shop) == 0
