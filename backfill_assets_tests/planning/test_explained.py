"""What the edits of a plan explain, in the models that are edited and in those that read them."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.models.column import Column
from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.planning.change.deriving import explained
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan import Build, Plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import Category, PlanRequest
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets_tests.builders import (
    COLUMNS,
    FIRST,
    a_graph,
    a_model,
    a_run,
    a_source,
    a_view,
    day,
)

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.change.categorize import DeclarationDifference

NOW = FIRST + timedelta(days=8)
VISITS, READER = "web.visits", "web.reader"
WHERE = "WHERE ds >= :start_ds AND ds < :end_ds"


def a_world(cost: str = "cost", reads: str = "cost", owner: str = "team:web") -> Graph:
    visits = a_model(sql=f"SELECT ds, id, {cost} AS cost FROM web.events {WHERE}", columns=COLUMNS)
    reader = a_model(
        READER,
        sql=f"SELECT ds, id, {reads} AS cost FROM {VISITS} {WHERE}",
        upstreams=[VISITS],
        owner=owner,
    )
    return a_graph(visits, reader)


def planned(before: Graph, after: Graph) -> Plan:
    view = a_view({name: [a_run(day(1, 8), 1)] for name in before.order})
    state = PlanState(view=view, running=snapshots_of(before))
    return build_plan(PlanRequest(environment=PROD), after, state, NOW)


def found(before: Graph, after: Graph) -> dict[str, DeclarationDifference]:
    plan = planned(before, after)
    reads = {name: lineage_of(after, after.models[name]).reads for name in after.order}
    return explained(plan, before, after, reads)


def test_what_an_edit_changes_is_explained_in_its_readers_too():
    edits = found(a_world(), a_world("cost + 1", owner="team:other"))
    assert {name: (edit.rows, edit.columns) for name, edit in edits.items()} == {
        VISITS: (False, frozenset({"cost"})),
        READER: (False, frozenset({"cost"})),
    }


def test_a_reader_that_stays_as_it_is_differs_for_its_upstream_alone():
    assert found(a_world(), a_world("cost + 1"))[READER].why == f"reads what changed of {VISITS}"
    assert found(a_world(reads="id"), a_world("cost + 1", reads="id")).keys() == {VISITS}


def test_an_added_column_is_explained_as_an_addition_and_other_models_and_new_ones_not_at_all():
    other = a_model("web.other")
    before = a_graph(a_world().models[VISITS], other)
    page = Column("page", "string")
    sql = f"SELECT ds, id, cost AS cost, page FROM web.events {WHERE}"
    visits = a_model(sql=sql, columns=[*COLUMNS, page])
    sql = f"SELECT ds, id, COUNT(*) AS cost FROM {VISITS} {WHERE} GROUP BY ALL"
    reader = a_model(READER, sql=sql, upstreams=[VISITS])

    (edit,) = found(before, a_graph(visits, reader, other)).values()

    assert (edit.category, edit.columns) == (Category.NON_BREAKING, {"page"})
    changed = a_graph(*a_world("cost + 1").models.values(), other)
    assert found(before, changed).keys() == {VISITS}


@pytest.mark.parametrize(
    ("one", "category"), [("1", Category.NON_BREAKING), ("cost", Category.BREAKING)]
)
def test_a_reader_that_adds_columns_stays_additive_where_what_changed_reaches_these_alone(
    one: str, category: Category
):
    def world(cost: str, *more: str) -> Graph:
        visits = a_model(sql=f"SELECT ds, id, {cost} AS cost FROM web.events {WHERE}")
        outputs = ", ".join(
            ["ds", "id", f"{one} AS one", *(f"cost * 2 AS {name}" for name in more)]
        )
        columns = [*COLUMNS[:2], *(Column(name, "double") for name in ("one", *more))]
        sql = f"SELECT {outputs} FROM {VISITS} {WHERE}"
        return a_graph(visits, a_model(READER, sql=sql, columns=columns, upstreams=[VISITS]))

    reader = planned(world("cost"), world("cost + 1", "twice")).model(READER)

    assert reader is not None
    assert reader.category is category


def test_an_edit_explains_nothing_in_what_does_not_read_it():
    edits = found(a_world(reads="id"), a_world("cost + 1", reads="id", owner="team:other"))
    assert edits[VISITS].columns == {"cost"}
    assert (edits[READER].rows, edits[READER].columns) == (False, frozenset())


NOTE = Column("note", "string")
UNNAMED = [
    f"SELECT ds, id, COUNT(*) AS cost FROM (SELECT DISTINCT * FROM {VISITS} {WHERE}) GROUP BY ds, id",
    f"SELECT ds, id, cost FROM (SELECT *, 1 AS one FROM {VISITS} {WHERE} GROUP BY ALL)",
    f"SELECT ds, id, v.cost FROM {VISITS} v NATURAL JOIN web.events {WHERE}",
]


@pytest.mark.parametrize("sql", UNNAMED)
@pytest.mark.parametrize("instead", ["", ", note AS memo"])
def test_a_column_that_goes_is_read_where_a_star_or_a_natural_join_took_it(sql: str, instead: str):
    events = a_source(columns=[*COLUMNS, NOTE])
    reader = a_model(READER, sql=sql, upstreams=[VISITS, "web.events"][: 1 + ("NATURAL" in sql)])

    def world(more: str, *columns: Column) -> Graph:
        query = f"SELECT ds, id, cost{more} FROM web.events {WHERE}"
        return a_graph(a_model(sql=query, columns=[*COLUMNS, *columns]), reader, sources=[events])

    before = world(", note", NOTE)
    after = world(instead, *[replace(NOTE, name="memo")] * bool(instead))

    for old, new in ((before, after), (after, before)):
        (read,) = [model for model in planned(old, new).models if model.model == READER]
        assert read.build is Build.NEW_VERSION
        assert found(old, new)[READER].rows


def test_an_edit_of_a_reader_is_explained_with_what_changed_above_it():
    def world(cost: str, one: str) -> Graph:
        visits = a_model(sql=f"SELECT ds, id, {cost} AS cost FROM web.events {WHERE}")
        sql = f"SELECT ds, id, cost, {one} AS one FROM {VISITS} {WHERE}"
        columns = [*COLUMNS, Column("one", "int")]
        return a_graph(visits, a_model(READER, sql=sql, columns=columns, upstreams=[VISITS]))

    edits = found(world("cost", "1"), world("cost + 1", "2"))

    assert (edits[READER].rows, edits[READER].columns) == (False, frozenset({"cost", "one"}))
