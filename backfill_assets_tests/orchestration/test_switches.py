"""What a tick says while somebody has left a sensor off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.models.source import WhenEmpty
from backfill_assets.orchestration import switches
from backfill_assets.orchestration.switches import SOURCE_SENSOR
from backfill_assets_tests.builders import a_graph, a_source, day
from backfill_assets_tests.engine.test_looked_again import land
from backfill_assets_tests.orchestration.test_ticks import Ticking, ticking  # noqa: F401

if TYPE_CHECKING:
    import dagster as dg

WAITS = a_source(when_empty=WhenEmpty.WAIT)


@pytest.fixture
def waiting(ticking: Ticking, monkeypatch: pytest.MonkeyPatch) -> Ticking:  # noqa: F811
    """Nine days are built, and the rows of the tenth have not come."""
    monkeypatch.setattr("backfill_assets_tests.orchestration.test_ticks.a_source", lambda: WAITS)
    world = ticking.world
    world.graph = a_graph(*ticking.models, sources=[WAITS])
    land(world, *range(1, 10))
    for name in world.graph.order:
        world.fill(name, day(1, 9))
    return ticking


def _skipped(ticking: Ticking) -> str:  # noqa: F811
    found = ticking.evaluate()
    assert not found.run_requests
    return found.skip_message or ""


def test_a_tick_with_nothing_to_release_says_that_nobody_looks_at_the_sources(waiting: Ticking):
    for _ in range(2):
        said = _skipped(waiting)
        assert "cells of web.visits wait" in said
        assert f"switch on {SOURCE_SENSOR}" in said


def test_where_somebody_looks_nothing_is_said(waiting: Ticking, monkeypatch: pytest.MonkeyPatch):
    def on(_: dg.DagsterInstance, sensor: str) -> bool:
        return sensor == SOURCE_SENSOR

    monkeypatch.setattr(switches, "is_on", on)

    assert SOURCE_SENSOR not in _skipped(waiting)


def test_where_nothing_is_missing_nobody_need_look(waiting: Ticking):
    for name in waiting.world.graph.order:
        waiting.world.fill(name, day(10))

    assert SOURCE_SENSOR not in _skipped(waiting)


def test_a_source_that_nobody_has_ever_looked_at_is_told_of(ticking: Ticking):  # noqa: F811
    while ticking.tick():  # what could be built is under way
        pass

    assert f"switch on {SOURCE_SENSOR}" in _skipped(ticking)
