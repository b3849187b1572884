"""What `diff` has found of a plan is kept with it, until a file that it has read is another."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.plans.comparing import published_and_built, shown_once
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.review.compared import Shown, compared_models
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.warehouse.compare.compare_rows import compare_rows
from backfill_assets.warehouse.compare.comparison_sql import Question
from backfill_assets_tests.builders import a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_contract import DOUBLED
from backfill_assets_tests.engine.test_plans import OLD, ROWS, VISITS
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World


CELLS = IntervalSet.of(days(7, 8, 9, 10))


@dataclass
class Asking:
    """Asks for comparisons of a plan as `diff` does."""

    plans: Plans
    plan: Plan
    asked: list[Question] = field(default_factory=list[Question])

    def __call__(self, question: Question, rows: int = 3) -> Shown:
        op = Operation(project=self.plans.project(DOUBLED), plan=self.plan)
        model = op.workspace().graph.model(VISITS)
        both = published_and_built(model, (op.environment(), op.workspace()))

        def ask() -> Shown:
            self.asked.append(question)
            found = compare_rows(both, question)
            kept = found.comparison().to_keep(both.model, question)
            return Shown(kept, found.differences(rows))

        return shown_once(op.store, self.plan.plan_id, both, (question, rows), ask)


@pytest.fixture
def shown(world: World) -> Asking:
    plans = Plans(world)
    world.begin(OLD, *ROWS)
    plan = plans.make(DOUBLED)
    plans.apply(DOUBLED, plan)
    return Asking(plans, plan)


def test_the_same_question_is_answered_from_the_store_until_a_file_is_another(
    world: World, shown: Asking
):
    first = shown(Question(cells=CELLS, profile=True))
    assert [group.rows_changed for group in first.comparison.groups] == [1, 1, 1, 1]
    assert shown(Question(cells=CELLS, profile=True)) == first
    assert len(shown.asked) == 1
    shown(Question(cells=CELLS))
    shown(Question(cells=CELLS), rows=1)
    shown(Question(cells=CELLS, tolerances=(("cost", "99"),)))
    assert len(shown.asked) == 4
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))
    world.fill(OLD)
    assert shown(Question(cells=CELLS, profile=True)) == first  # another day is no file of these
    assert len(shown.asked) == 4
    shown.plans.promote(DOUBLED, shown.plan)


def test_what_is_asked_of_some_rows_or_within_a_tolerance_is_no_evidence_of_the_plan(
    world: World, shown: Asking
):
    shown(Question(cells=CELLS))
    world.clock.now += timedelta(minutes=1)
    within = shown(Question(cells=CELLS, tolerances=(("cost", "99"),)))
    assert not any(group.rows_changed for group in within.comparison.groups)

    found = compared_models(world.store, shown.plan.plan_id, world.clock())[VISITS]

    assert [group.rows_changed for group in found.cells.values()] == [1, 1, 1, 1]
