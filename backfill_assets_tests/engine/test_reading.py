"""What readers get: one table and its pin, or the tables that make up what a plan would publish."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.plans.plan_verbs import abandon_plan
from backfill_assets.errors import RequestError
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.reading import (
    NotPublishedError,
    Resolved,
    ResolvedLayers,
    read,
    resolve,
)
from backfill_assets.settings import Settings
from backfill_assets.state.environments import UnknownEnvironmentError
from backfill_assets.state.plans import UnknownPlanError
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World

pytestmark = pytest.mark.spark

VISITS = "web.visits"
GRAPH = a_graph(a_model(VISITS))


@pytest.fixture
def here(world: World) -> dict[str, Any]:
    """Days 1 to 10 of prod, and where they lie."""
    world.begin(GRAPH, *(row(n, 1, float(n)) for n in range(1, 11)))
    return {
        "settings": Settings(data_dir=str(world.root), state_url=f"sqlite:///{world.root}/state.db")
    }


def restated(world: World, *, applied: bool) -> Plan:
    """Day 5 was wrong: its cost is 99."""
    world.land(a_source(), *(row(n, 1, 99.0 if n == 5 else float(n)) for n in range(1, 11)))
    plan = Plans(world).make(GRAPH, restate=(Restatement(VISITS, "2024-01-04", "2024-01-06"),))
    if applied:
        Plans(world).apply(GRAPH, plan)
    return plan


def costs(rows: DataFrame) -> dict[int, int]:
    return {record["ds"].day: int(record["cost"]) for record in rows.collect()}


PUBLISHED = {n: n for n in range(1, 11)}


def test_one_table_unpacks_into_its_path_and_pin(
    world: World,
    spark: SparkSession,
    here: dict[str, Any],
):
    found = resolve(VISITS, **here)
    assert isinstance(found, Resolved)
    path, delta_version = found
    assert (path, delta_version) == (world.path(VISITS), world.pointer(VISITS).delta_version)
    rows = read(VISITS, spark=spark, **here)
    assert rows.columns == ["ds", "id", "cost"]
    assert costs(rows) == PUBLISHED


def test_an_unpromoted_plan_is_read_as_it_would_be_published(
    world: World,
    spark: SparkSession,
    here: dict[str, Any],
):
    plan = restated(world, applied=True)
    assert costs(read(VISITS, plan=plan.plan_id, spark=spark, **here)) == {**PUBLISHED, 5: 99}
    assert costs(read(VISITS, spark=spark, **here)) == PUBLISHED
    Plans(world).promote(GRAPH, plan)
    assert costs(read(VISITS, spark=spark, **here)) == {**PUBLISHED, 5: 99}


def test_several_tables_say_which_rows_of_each_count(
    world: World,
    spark: SparkSession,
    here: dict[str, Any],
):
    plan = restated(world, applied=True)
    found = resolve(VISITS, plan=plan.plan_id, **here)
    assert isinstance(found, ResolvedLayers)
    assert [part.path for part in found.under] == [world.path(VISITS)]
    parts = (
        f"SELECT ds, cost FROM delta.`{layer.path}` VERSION AS OF {layer.delta_version} "
        f"WHERE {layer.where}"
        for layer in found.layers
    )
    assert costs(spark.sql(" UNION ALL ".join(parts))) == {**PUBLISHED, 5: 99}
    with pytest.raises(ValueError, match="unpack"):
        _, _ = iter(found)  # a part is not read for the whole


def test_a_plan_has_nothing_to_read_before_it_begins_and_after_it_ends(
    world: World,
    here: dict[str, Any],
):
    plan = restated(world, applied=False)
    with pytest.raises(RequestError, match="is proposed, so there is nothing of its own"):
        resolve(VISITS, plan=plan.plan_id, **here)
    Plans(world).apply(GRAPH, plan)
    assert resolve(VISITS, plan=plan.plan_id[:5], **here)
    abandon_plan(Plans(world).project(GRAPH), plan)
    with pytest.raises(RequestError, match="is abandoned, so there is nothing of its own"):
        resolve(VISITS, plan=plan.plan_id, **here)


def test_what_is_unknown_is_named(here: dict[str, Any]):
    with pytest.raises(UnknownPlanError):
        resolve(VISITS, plan="p000000000", **here)
    with pytest.raises(UnknownEnvironmentError):
        resolve(VISITS, env="nowhere", **here)
    with pytest.raises(NotPublishedError, match=r"it has: web\.visits"):
        resolve("web.nothing", **here)
