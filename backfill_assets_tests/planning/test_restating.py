"""What may be declared wrong, and how."""

from __future__ import annotations

from datetime import timedelta

import pytest

from backfill_assets.planning.asked import RequestError
from backfill_assets.planning.build_plan import build_plan
from backfill_assets.planning.plan_state import PlanState
from backfill_assets.planning.request import PlanRequest, Restatement
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.snapshot import snapshots_of
from backfill_assets_tests.builders import EVENTS, FIRST, a_graph, a_model, a_run, a_view, day

NOW = FIRST + timedelta(days=8)


def test_a_slice_of_a_restated_source_is_refused_since_no_model_is_named_that_it_holds_for():
    graph = a_graph(a_model())
    view = a_view({name: [a_run(day(1, 8), 1)] for name in graph.order})
    request = PlanRequest(environment=PROD, restate=(Restatement(EVENTS),), where="cost > 1")

    with pytest.raises(RequestError, match=r"'web\.events' is a source"):
        build_plan(request, graph, PlanState(view=view, running=snapshots_of(graph)), NOW)
