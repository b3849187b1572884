"""What a program reads that works with plans: JSON alone on stdout, and exit codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets import resolve
from backfill_assets_tests.stories.edits import worth_six_dollars
from backfill_assets_tests.stories.landing import raise_cost
from backfill_assets_tests.stories.project import FILLED, PERFORMANCE, ROI, day
from backfill_assets_tests.stories.published import rows

if TYPE_CHECKING:
    from backfill_assets_tests.stories.project import Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]

LAST_WEEK = f"{day(FILLED)}..{day(FILLED + 6)}"


def test_a_program_takes_a_plan_from_its_proposal_to_its_way_back_by_json_alone(quarter: Project):
    worth_six_dollars(quarter)
    plan = quarter.do("plan", "--json", code=2).json["plan_id"]
    assert plan == quarter.do("show", plan, "--json").json["plan"]["plan_id"]

    applied = quarter.do("apply", plan, "--json").json
    assert (applied["plan_id"], applied["status"]) == (plan, "built")
    assert (applied["left"], applied["errors"]) == ({}, [])
    assert f"backfill promote {plan}" in applied["next"]
    [done] = [progress for progress in applied["progress"] if progress["model"] == ROI]
    assert done["done"] == done["planned"] == FILLED + 7

    compared = quarter.do("diff", plan, "--json", code=2).json
    assert (compared["old"], compared["new"]) == ("prod", plan)
    assert {model["model"]: model["differs"] for model in compared["models"]} == {ROI: True}
    [asked] = quarter.do("diff", plan, ROI, "--sql", "--json").json["models"]
    assert (asked["model"], "SELECT" in asked["sql"]) == (ROI, True)

    promoted = quarter.do("promote", plan, "--yes", "--json").json
    assert (promoted["plan_id"], promoted["environment"]) == (plan, "prod")
    assert (promoted["appended"], promoted["removed"]) == ({}, [])
    assert [environment["finalized_by"] for environment in quarter.do("envs", "--json").json] == [
        plan
    ]

    [back] = quarter.do("rollback", plan, "--yes", "--json").json
    assert (back["plan_id"], back["number"] > promoted["number"]) == (plan, True)
    kinds = [event["what"] for event in quarter.do("history", ROI, "--json").json]
    assert kinds[-2:] == ["promote", "rollback"]
    assert quarter.do("show", plan, "--json").json["status"] == "rolled back"
    assert quarter.do("gc", "--dry-run", "--json").json["tables"] == []


def test_a_diff_prints_one_query_for_each_model_that_it_compares(quarter: Project):
    raise_cost(quarter, [day(40)])
    plan = quarter.plan("--restate", f"marketing.ad_events:{day(40)}").plan_id
    quarter.do("apply", plan)

    printed = quarter.do("diff", plan, "--sql").out

    assert printed.startswith(f"-- {PERFORMANCE}\n")
    assert printed.count(";\n") == len(quarter.do("diff", plan, "--json", code=2).json["models"])


def test_a_table_of_somebody_else_is_audited_and_recorded_without_computing(
    weeks: Project, first_quarter: Project
):
    theirs, _ = resolve(PERFORMANCE, settings=first_quarter.settings)
    words = ("adopt", str(theirs), PERFORMANCE, "--cells", LAST_WEEK)
    before = rows(weeks, PERFORMANCE)

    looked = weeks.do(*words, "--dry-run", "--json").json
    assert all(audit["passed"] for audit in looked["audits"])
    assert "no terminal to ask on" in weeks.do(*words, code=1).err
    assert rows(weeks, PERFORMANCE) == before

    adopted = weeks.do(*words, "--yes", "--json").json
    assert (adopted["missing"], adopted["left"]) == (looked["missing"], "none")
    assert adopted["errors"] == []
    assert rows(weeks, PERFORMANCE) == rows(first_quarter, PERFORMANCE)
    assert "adopted" in weeks.do("why", PERFORMANCE, str(day(FILLED))).said
