"""Planted defects: what audits notice is told apart from what nothing notices, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.batch.planted_run import audit_planted
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import accepted_range, metric_within
from backfill_assets.models.planted import Defect, Planted, advice, defects_of
from backfill_assets_tests.builders import a_graph, a_model
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"


def visits(*audits: Audit) -> Graph:
    return a_graph(a_model(audits=audits, cadence=Daily(start="2024-01-01", end="2024-01-06")))


def rows() -> list[tuple[object, ...]]:
    return [row(day, id_=number, cost=5) for day in range(1, 7) for number in range(20)]


@pytest.mark.spark
def test_what_no_audit_notices_is_told_apart(world: World):
    graph = visits(accepted_range("cost", 0, None))
    world.begin(graph, *rows())
    before = (world.head(VISITS), world.rows(VISITS))

    found = {noticed.planted: noticed for noticed in audit_planted(world.open(graph), VISITS)}

    assert found[Planted(Defect.DUPLICATED)].stopped_by == ("unique_grain",)
    assert found[Planted(Defect.FANNED_OUT)].stopped_by == ("unique_grain",)
    assert found[Planted(Defect.NEGATED, "cost")].stopped_by == ("accepted_range_cost",)
    unnoticed = {noticed.planted for noticed in found.values() if not noticed.stopped_by}
    assert unnoticed >= {
        Planted(Defect.DROPPED),
        Planted(Defect.DOUBLED, "cost"),
        Planted(Defect.EMPTIED, "cost"),
    }
    assert (world.head(VISITS), world.rows(VISITS)) == before


@pytest.mark.spark
def test_an_audit_against_what_is_published_notices_them(world: World):
    graph = visits(
        accepted_range("cost", 0, None), metric_within("cost", 0.01), metric_within("*", warn=True)
    )
    world.begin(graph, *rows())

    found = {noticed.planted: noticed for noticed in audit_planted(world.open(graph), VISITS)}

    assert all(noticed.stopped_by for noticed in found.values()), found
    assert found[Planted(Defect.DROPPED)].warned_by == ("metric_within_rows",)


def test_nothing_published_is_a_clear_error(world: World):
    with pytest.raises(RequestError, match="nothing with rows of 'web"):
        list(audit_planted(world.open(visits()), VISITS))


def test_each_defect_has_advice():
    for planted in defects_of(visits().model(VISITS)):
        assert planted.column in advice(planted)
