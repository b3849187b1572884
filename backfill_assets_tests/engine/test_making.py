"""Plans that a run makes by itself are made as everybody's are."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.automatic.by_hand import rebuild_by_hand
from backfill_assets.engine.project.opening import open_run
from backfill_assets.engine.project.plan_terms import PlanTerms
from backfill_assets.errors import RequestError
from backfill_assets.intervals import WHOLE_CELL, IntervalSet, Whole
from backfill_assets.models.kind import Full
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.environment import PROD
from backfill_assets_tests.builders import a_model, day, days
from backfill_assets_tests.engine.queue_world import QueueWorld

if TYPE_CHECKING:
    from pathlib import Path

VISITS = "web.visits"


class _MadeError(Exception):
    """The plan is made; nothing is to be built."""


def _ended(*_: object) -> None:
    raise _MadeError


def test_the_plan_of_a_launch_by_hand_has_an_estimate_and_lasts_as_people_have_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    world = QueueWorld.of(tmp_path, a_model(VISITS))
    world.fill(VISITS, day(1, 10))
    run = open_run(world.project(terms=PlanTerms(plan_days=3)), PROD)
    monkeypatch.setattr("backfill_assets.engine.automatic.automatic_plan.apply_plan", _ended)

    with pytest.raises(_MadeError):
        rebuild_by_hand(run, VISITS, {VISITS: days(3)})

    (stored,) = world.store.plans.latest()
    assert stored.expires_at == world.now + timedelta(days=3)
    assert read_plan(stored.content).estimate is not None


def test_a_launch_by_hand_of_which_nothing_can_be_built_says_why(tmp_path: Path):
    whole = a_model("web.whole", kind=Full(), cadence=Whole(), upstreams=[VISITS], late_window=0)
    world = QueueWorld.of(tmp_path, a_model(VISITS), whole)
    world.fill(VISITS, day(1, 10))
    world.fill("web.whole", WHOLE_CELL)
    world.now += timedelta(days=1)
    run = open_run(world.project(), PROD)

    with pytest.raises(RequestError, match="they read cells that are not there"):
        rebuild_by_hand(run, "web.whole", {"web.whole": IntervalSet.of([WHOLE_CELL])})

    assert world.store.plans.latest() == []
