"""Which published cells a plan would build from source cells that have lost all their rows."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given, strategies as st

from backfill_assets.intervals import Daily, IntervalSet
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.build_plan import build_plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.planning.review.source_history import LostHistory, lost_history
from backfill_assets.snapshots.environment import Pointer
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets.snapshots.state_view import SourceState
from backfill_assets_tests.builders import EVENTS, a_graph, a_model, a_run, a_view, days

NOW = datetime(2024, 1, 15, tzinfo=UTC)
VISITS = "web.visits"
DAYS = st.frozensets(st.integers(1, 10))


def lost(
    lookback: int, published: frozenset[int], emptied: frozenset[int], held: frozenset[int],
    *restated: Restatement,
) -> tuple[LostHistory, ...]:  # fmt: skip
    model = a_model(
        cadence=Daily(start="2024-01-01", end="2024-01-10"),
        upstreams=[Upstream(EVENTS, lookback=lookback)],
    )
    graph = a_graph(model)
    runs = tuple(a_run(cell, 1) for cell in days(*(held | emptied)))
    view = a_view({VISITS: [a_run(cell, 3) for cell in model.cadence.cells(days(*published))]})
    source = SourceState(Pointer("", EVENTS, "", "", 1), runs, days(*emptied))
    view = type(view)(**{**view.__dict__, "sources": {EVENTS: source}})
    state = PlanState(view=view, running=snapshots_of(graph))
    request = PlanRequest(environment="prod", restate=(Restatement(VISITS), *restated))
    return tuple(lost_history(build_plan(request, graph, state, NOW), graph, view))


@given(st.integers(0, 3), DAYS, DAYS, DAYS)
def test_a_cell_is_lost_if_it_reads_emptied_source_cells_and_none_with_rows(
    lookback: int, published: frozenset[int], emptied: frozenset[int], held: frozenset[int]
):
    held -= emptied

    def reads(cell: int) -> set[int]:
        return set(range(max(1, cell - lookback), cell + 1))

    expected = {cell for cell in published if reads(cell) & emptied and not reads(cell) & held}

    found = lost(lookback, published, emptied, held)

    cells = IntervalSet.union_all(each.cells for each in found)
    assert cells == days(*expected)
    assert all((each.model, each.source) == (VISITS, EVENTS) for each in found)


def test_a_restated_source_has_lost_nothing():
    everything = frozenset(range(1, 11))

    restated = Restatement(EVENTS, "2024-01-02", "2024-01-03")
    (found,) = lost(0, everything, frozenset({2, 3, 5}), everything - {2, 3, 5}, restated)

    assert found.cells == days(5)
