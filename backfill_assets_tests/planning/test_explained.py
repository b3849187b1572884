"""What the edits of a plan explain, in the models that are edited and in those that read them."""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.planning.change.deriving import explained
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import PlanRequest
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets_tests.builders import COLUMNS, FIRST, a_graph, a_model, a_run, a_view, day

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


def found(before: Graph, after: Graph) -> dict[str, DeclarationDifference]:
    view = a_view({name: [a_run(day(1, 8), 1)] for name in before.order})
    state = PlanState(view=view, running=snapshots_of(before))
    plan = build_plan(PlanRequest(environment=PROD), after, state, NOW)
    reads = {name: lineage_of(after, after.models[name]).reads for name in after.order}
    return explained(plan, before, after, reads)


def test_what_an_edit_changes_is_explained_in_its_readers_too():
    edits = found(a_world(), a_world("cost + 1", owner="team:other"))
    assert {name: (edit.rows, edit.columns) for name, edit in edits.items()} == {
        VISITS: (False, frozenset({"cost"})),
        READER: (False, frozenset({"cost"})),
    }


def test_an_edit_explains_nothing_in_what_does_not_read_it():
    edits = found(a_world(reads="id"), a_world("cost + 1", reads="id", owner="team:other"))
    assert edits[VISITS].columns == {"cost"}
    assert (edits[READER].rows, edits[READER].columns) == (False, frozenset())
