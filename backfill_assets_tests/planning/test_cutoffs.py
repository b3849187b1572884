"""A cutoff is obeyed by the rule and by every later plan, until it is lifted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals import IntervalSet, Weekly
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.plan import Build, Plan
from backfill_assets.planning.plan.plan_json import plan_json, read_plan
from backfill_assets.planning.plan.plan_state import PlanState
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.planning.plan.request_rules import check_request
from backfill_assets.planning.rule.explain import why
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.snapshots.cutoff import Cutoff
from backfill_assets.snapshots.environment import PROD, Pointer
from backfill_assets.snapshots.state_view import SourceState
from backfill_assets_tests.builders import EVENTS, a_run, day
from backfill_assets_tests.planning.test_build_plan import (
    GRAPH,
    NOW,
    TWICE,
    a_plan,
    a_state,
    edited,
)

STORED = Cutoff("2024-01-06", "agreed with finance", "p0")


def cut(**ready: Any) -> PlanState:  # noqa: ANN401
    """Prod, where web.a has a cutoff."""
    state = a_state(**ready)
    return replace(state, view=replace(state.view, cutoffs={"web.a": STORED}))


def cells(plan: Plan, name: str) -> IntervalSet:
    found = plan.model(name)
    return IntervalSet.empty() if found is None else found.cells


def test_neither_gaps_nor_owed_cells_before_a_cutoff_need_work():
    lacking = IntervalSet.of([day(3, 8)]) - IntervalSet.of([day(8)])
    view = cut(a=lacking).view
    view = replace(view, owed=CellsByModel({"web.a": IntervalSet.of([day(4), day(7)])}))

    work = needs_work(GRAPH, view, GRAPH.models["web.a"], now=NOW)

    assert work.gaps == IntervalSet.of([day(8)])
    assert work.owed == IntervalSet.of([day(7)])


def test_a_restatement_alone_with_a_cutoff_is_refused_for_there_is_no_old_definition_to_keep():
    asked = {"restate": (Restatement("web.a"),), "cutoff": "2024-01-06", "reason": "agreed"}
    with pytest.raises(RequestError, match=r"--restate MODEL:2024-01-06\.\."):
        a_plan(**asked)

    kept = a_plan(state=cut(), **asked).model("web.a")

    assert kept is not None
    assert kept.kept_before == STORED
    with pytest.raises(RequestError, match=r"no cutoff of a model .* begins then or later"):
        a_plan(state=cut(), **{**asked, "cutoff": "2024-01-07"})


def test_a_later_edit_keeps_the_table_and_is_computed_from_the_cutoff_on():
    plan = a_plan(edited(sql=TWICE), cut())

    model = plan.model("web.a")
    assert model is not None
    assert model.build is Build.IN_PLACE
    assert model.cells == IntervalSet.of([day(6, 5)])
    assert model.kept_before == STORED
    assert any("2024-01-06" in note and "--lift-cutoff web.a" in note for note in model.notes)


def test_a_table_whose_cells_become_others_can_not_be_kept_from_a_cutoff_on():
    weekly = edited(cadence=Weekly(start="2024-01-01"))
    with pytest.raises(
        RequestError, match=r"a cutoff keeps the table of 'web\.a', but its cells are"
    ):
        a_plan(weekly, cutoff="2024-01-06", reason="agreed with finance")
    with pytest.raises(RequestError, match=r"a cutoff keeps .* its cells are others"):
        a_plan(weekly, cut())
    model = a_plan(weekly, cut(), lift_cutoffs=("web.a",)).model("web.a")
    assert model is not None
    assert model.build is Build.NEW_VERSION


def test_a_later_restatement_leaves_out_what_lies_before_the_cutoff():
    plan = a_plan(state=cut(), restate=(Restatement("web.a", "2024-01-04", "2024-01-07"),))

    assert cells(plan, "web.a") == IntervalSet.of([day(6, 2)])


def test_a_cutoff_of_a_day_that_has_begun_somewhere_is_not_in_the_future():
    evening = NOW - timedelta(hours=4)  # of the 10th in UTC; the morning of the 11th in Tokyo

    for_tomorrow, beyond = (
        PlanRequest(environment=PROD, cutoff=date, reason="agreed")
        for date in ("2024-01-11", "2024-01-12")
    )

    check_request(for_tomorrow, evening)
    with pytest.raises(RequestError, match="the cutoff 2024-01-12 lies in the future"):
        check_request(beyond, evening)


@pytest.mark.parametrize("reads_itself", [False, True])
def test_a_restatement_fills_no_gap_before_the_cutoff(*, reads_itself: bool):
    upstreams = [EVENTS, *([Upstream("web.a", lookback=1)] if reads_itself else [])]
    graph = edited(sql=TWICE, upstreams=upstreams)
    wrong = (Restatement(EVENTS, "2024-01-03", "2024-01-04"),)
    state = a_state(a=IntervalSet.of([day(1, 2)]), b=IntervalSet.empty())

    plan = a_plan(graph, state, cutoff="2024-01-10", reason="agreed", restate=wrong)

    assert cells(plan, "web.a") - IntervalSet.of([day(10)]) == IntervalSet.empty()


@pytest.mark.parametrize(
    ("effective_from", "first"), [("2024-01-04", 6), ("2024-01-06", 6), ("2024-01-08", 8)]
)
def test_where_a_cutoff_is_stored_a_later_date_of_the_request_counts(
    effective_from: str, first: int
):
    plan = a_plan(edited(sql=TWICE), cut(), forward_only=True, effective_from=effective_from)

    assert cells(plan, "web.a") == IntervalSet.of([day(first, 11 - first)])


@pytest.mark.parametrize("name", ["web.a", EVENTS], ids=["the model", "a source that it reads"])
def test_a_restatement_of_nothing_but_older_cells_says_why_there_is_nothing_to_do(name: str):
    plan = a_plan(state=cut(), restate=(Restatement(name, "2024-01-02", "2024-01-03"),))

    assert not cells(plan, "web.a")
    assert any("agreed with finance" in note for note in plan.notes)


def test_lifting_a_cutoff_plans_the_older_cells():
    plan = a_plan(state=cut(), lift_cutoffs=("web.a",))

    model = plan.model("web.a")
    assert model is not None
    assert model.cells == IntervalSet.of([day(1, 5)])
    assert model.kept_before is None
    assert read_plan(plan_json(plan)) == plan


def test_gaps_before_a_lifted_cutoff_are_built_in_the_workspace_like_ready_cells():
    """Until the promotion their environment keeps the cutoff, and fills none of them."""
    state = cut(a=IntervalSet.of([day(6, 5)]), b=IntervalSet.of([day(6, 5)]))

    plan = a_plan(state=state, lift_cutoffs=("web.a",))

    model = plan.model("web.a")
    assert model is not None
    assert (model.cells, model.build) == (IntervalSet.of([day(1, 5)]), Build.IN_PLACE)
    assert not plan.fills_only


def test_a_cutoff_moves_back_only_when_it_is_lifted():
    earlier = {"cutoff": "2024-01-03", "reason": "finance again"}

    kept = a_plan(edited(sql=TWICE), cut(), **earlier)
    moved = a_plan(edited(sql=TWICE), cut(), lift_cutoffs=("web.a",), **earlier)

    assert cells(kept, "web.a") == IntervalSet.of([day(6, 5)])
    assert cells(moved, "web.a") == IntervalSet.of([day(3, 8)])
    model = moved.model("web.a")
    assert model is not None
    assert model.kept_before == Cutoff("2024-01-03", "finance again")


def test_gaps_before_the_cutoff_of_the_plan_itself_are_not_filled_by_the_new_definition():
    plan = a_plan(
        edited(sql=TWICE),
        a_state(a=IntervalSet.of([day(3, 8)])),
        cutoff="2024-01-06",
        reason="old",
    )

    assert cells(plan, "web.a") == IntervalSet.of([day(6, 5)])


def test_a_cutoff_that_is_not_there_can_not_be_lifted():
    with pytest.raises(RequestError, match=r"--lift-cutoff web\.b.*models with one: web\.a"):
        a_plan(state=cut(), lift_cutoffs=("web.b",))


def test_why_tells_of_the_cutoff():
    told = why(GRAPH, cut().view, "web.a", day(4), now=NOW)

    assert [reason.branch for reason in told if reason.model == "web.a"] == ["ready", "cutoff"]
    assert "agreed with finance; set by plan p0" in told[1].text


def test_what_changed_before_a_cutoff_is_named_and_needs_no_work():
    view = cut().view
    stale = a_run(day(2), 1, changed=99)
    later = a_run(day(7), 1, changed=99)
    source = SourceState(Pointer("", EVENTS, "", "", 4), (stale, later))
    state = replace(cut(), view=replace(view, sources={EVENTS: source}))

    work = needs_work(GRAPH, state.view, GRAPH.models["web.a"], now=NOW)
    plan = a_plan(state=state)

    assert (work.stale_cells, work.kept) == (IntervalSet.of([day(7)]), IntervalSet.of([day(2)]))
    assert cells(plan, "web.a") == IntervalSet.of([day(7)])
    assert any("before 2024-01-06" in note and "2024-01-02" in note for note in plan.notes)
    lifted = a_plan(state=state, lift_cutoffs=("web.a",))
    assert not any("would need work" in note for note in lifted.notes)


def test_a_cutoff_that_the_plan_brings_keeps_older_cells_that_have_late_rows():
    runs = tuple(a_run(cell, 5) for cell in (day(2), day(8)))
    state = a_state()
    source = SourceState(Pointer("", EVENTS, "", "", 4), runs)
    state = replace(state, view=replace(state.view, sources={EVENTS: source}))

    plan = a_plan(edited(sql=TWICE), state, cutoff="2024-01-06", reason="agreed with finance")

    assert cells(plan, "web.a") == IntervalSet.of([day(6, 5)])
