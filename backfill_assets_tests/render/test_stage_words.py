"""The stages of a plan in words, as `plan -v` and the Markdown form print them."""

from __future__ import annotations

import pytest

from backfill_assets.planning.plan.plan import Build
from backfill_assets.planning.plan.stages import (
    apply_stages,
    promote_stages,
    rollback_stages,
    undo_stages,
)
from backfill_assets.render.plan_markdown import plan_markdown
from backfill_assets.render.plan_text import plan_text
from backfill_assets.render.stage_words import stage_text, stages_by_verb
from backfill_assets_tests.builders import days
from backfill_assets_tests.planning.test_stages import planned
from backfill_assets_tests.render.plans import NAMING, PERFORMANCE, ROI, a_plan

GAPS = planned(ROI, Build.GAP_FILL, days(7))
OVER = planned(PERFORMANCE, Build.IN_PLACE, days(8, 9))
CHECKED = [
    ("apply", "fill up to 1 cell of 1 model in the tables that are read"),
    ("apply", "open a workspace, which no reader sees"),
    ("apply", "build up to 2 cells of 1 model in the workspace"),
    ("apply", "audit cells that the plan keeps, where it changes their audits"),
    ("apply", "check that no input has changed, and run the checks of strategies and contract"),
    ("promote", "compute with the new logic the cells that were published in the meantime"),
    ("promote", "check that no input has changed, and run the checks of strategies and contract"),
    ("promote", "audit cells that the plan keeps, where it changes their audits"),
    ("promote", "publish all models in one transaction"),
]


def test_a_protected_plan_names_what_apply_does_and_what_promote_does():
    assert list(stages_by_verb(a_plan(GAPS, OVER, protected=True), NAMING)) == CHECKED


def test_an_unprotected_plan_is_published_by_apply():
    told = stages_by_verb(a_plan(OVER, protected=False), NAMING)
    assert {verb for verb, _ in told} == {"apply"}
    assert told[-1] == ("apply", "publish all models in one transaction")


def test_gaps_alone_end_with_apply():
    assert [text for _, text in stages_by_verb(a_plan(GAPS), NAMING)] == [
        "fill up to 1 cell of 1 model in the tables that are read",
        "end the plan: promoted",
    ]


def test_each_stage_of_every_verb_has_words_of_its_own():
    plan = a_plan(GAPS, OVER, protected=True)
    stages = {*map(repr, promote_stages()), *map(repr, rollback_stages())}
    every = [*apply_stages(plan), *promote_stages(), *rollback_stages(), *undo_stages()]
    words = {repr(stage): stage_text(stage, NAMING) for stage in every}
    assert stages <= words.keys()
    assert len(set(words.values())) == len(words)


@pytest.mark.parametrize("whole", [True, False])
def test_the_text_names_the_stages_only_where_all_is_asked_for(*, whole: bool):
    lines = [line.text for line in plan_text(a_plan(OVER, protected=True), NAMING, whole=whole)]
    told = any(line.startswith("Promote   compute with the new logic") for line in lines)
    assert told is whole


def test_the_markdown_form_names_the_stages():
    text = plan_markdown(a_plan(OVER, protected=True), NAMING)
    assert "### Stages" in text
    assert "- `promote`: publish all models in one transaction" in text
