from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from backfill_assets.planning.plan.plan import CellWork, Plan, Why
from backfill_assets.planning.plan.request import Category, PlanRequest
from backfill_assets.render.why_not import why_not
from backfill_assets_tests.render.plans import (
    DAYS,
    MONTHS,
    NAMING,
    PERFORMANCE,
    ROI,
    TRENDS,
    a_plan,
    added_columns,
    span,
)

MARCH = span(DAYS, "2024-03-01", "2024-03-31")


def asked(plan: Plan, model: str, first: str, last: str) -> list[tuple[str, bool, str]]:
    cadence = MONTHS if model == TRENDS else DAYS
    answers = why_not(plan, NAMING, model, span(cadence, first, last))
    return [(answer.cells, answer.planned, answer.text) for answer in answers]


def march_of(
    category: Category | None = None,
    **request: Any,  # noqa: ANN401 - any field
) -> Plan:
    """A plan that rebuilds March and keeps the rest of half a year."""
    model = replace(
        added_columns().models[0],
        category=category,
        work=(CellWork(Why.RESTATED, MARCH),),
        kept=span(DAYS, "2024-01-01", "2024-05-31") - MARCH,
    )
    return a_plan(model, request=PlanRequest(environment="prod", **request))


def test_a_cell_that_is_planned_after_all_says_why():
    assert asked(march_of(), PERFORMANCE, "2024-03-31", "2024-04-01") == [
        ("2024-03-31", True, "it is in the plan: restated"),
        ("2024-04-01", False, "ready, and nothing that it reads changes in this plan"),
    ]


def test_a_reader_of_other_columns_is_left_alone():
    ((_, planned, text),) = asked(added_columns(), TRENDS, "2024-01-01", "2024-01-01")

    assert not planned
    assert text == "the model is left alone: reads none of: clicks, conversions"


def test_a_model_that_nothing_touches_is_told_what_would_have():
    plan = a_plan(request=PlanRequest(environment="prod", select=("+toy.sales",)))
    ((_, _, text),) = asked(plan, ROI, "2024-01-01", "2024-01-01")

    assert text.startswith("the plan does nothing with the model: ")
    assert text.endswith("(only +toy.sales was asked for)")


def test_a_removed_model_is_named_as_one():
    ((_, _, text),) = asked(a_plan(removed=(ROI,)), ROI, "2024-01-01", "2024-01-01")

    assert text.startswith("the model is not declared any more")


LEFT_OUT = {
    "cutoff": "before the cutoff 2024-03-01: it keeps the old definition (agreed)",
    "effective_from": "before the effective date 2024-03-01",
    "start": "before 2024-03-01, where the requested range starts",
}


@pytest.mark.parametrize(("option", "said"), LEFT_OUT.items())
def test_the_part_of_the_request_that_leaves_a_cell_out_is_named(option: str, said: str):
    plan = march_of(None, reason="agreed", **{option: "2024-03-01"})

    assert asked(plan, PERFORMANCE, "2024-02-28", "2024-03-01") == [
        ("2024-03-01", True, "it is in the plan: restated"),
        ("2024-02-28..2024-02-29 (2)", False, said),
    ]


def test_what_lies_after_the_requested_range_is_said_so():
    plan = march_of(end="2024-03-31")

    assert asked(plan, PERFORMANCE, "2024-04-01", "2024-04-02") == [
        ("2024-04-01..2024-04-02 (2)", False, "after 2024-03-31, where the requested range ends")
    ]


def test_history_that_a_forward_only_change_keeps_is_said_so():
    plan = march_of(Category.FORWARD_ONLY)

    ((_, _, text),) = asked(plan, PERFORMANCE, "2024-01-01", "2024-01-01")

    assert text == "the change is forward-only: history stays as it was computed"


def test_a_cell_that_was_not_due_is_not_required():
    ((_, _, text),) = asked(march_of(), PERFORMANCE, "2024-06-01", "2024-06-01")

    assert text.startswith("not required: outside the model's life, or not due when")


@pytest.mark.parametrize(
    ("request_", "first", "said"),
    [
        ({"cutoff": "2024-03-15"}, "2024-03-01", "before the cutoff 2024-03-15"),
        ({"effective_from": "2024-03-15"}, "2024-03-01", "before the effective date 2024-03-15"),
        ({"start": "2024-03-15"}, "2024-02-01", "before 2024-03-15, where the requested"),
        ({"end": "2024-03-15"}, "2024-04-01", "after 2024-03-15, where the requested"),
        ({"end": "2024-03-15", "end_bounded": True}, "2024-03-01", "after 2024-03-15, where"),
    ],
)
def test_a_cell_in_which_a_bound_lies_has_one_answer(
    request_: dict[str, Any], first: str, said: str
):
    model = replace(
        added_columns().models[0],
        model=TRENDS,
        work=(CellWork(Why.RESTATED, span(MONTHS, "2024-05-01", "2024-05-01")),),
        kept=span(MONTHS, "2024-01-01", "2024-04-01"),
    )
    plan = a_plan(model, request=PlanRequest(environment="prod", reason="agreed", **request_))

    ((cells, planned, text),) = asked(plan, TRENDS, first, first)

    assert (cells, planned) == (first, False)
    assert text.startswith(said)
