"""What becomes of a plan and what its history tells of it are one: a process may die between no two of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.plans.plan_verbs import abandon_plan, start_applying
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets_tests.engine.dying import Killed
from backfill_assets_tests.engine.queue_world import QueueWorld
from backfill_assets_tests.engine.test_looked_again import SUMS, VISITS, filled, land

if TYPE_CHECKING:
    from pathlib import Path


def test_a_process_that_dies_after_a_status_has_told_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    world = QueueWorld.of(tmp_path, VISITS, SUMS)
    land(world, *range(1, 11))
    op = world.operation(filled(world).planned("web.visits", 9))

    def dies(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr(world.store.plans, "tell", dies)
    start_applying(op)
    assert world.store.plans.get(op.plan_id).status is PlanStatus.APPLYING
    abandon_plan(op.project, op.plan)

    told = [event.event for event in world.store.plans.events(op.plan_id)]
    assert told == [PlanEventKind.APPLYING, PlanEventKind.ABANDONED]
