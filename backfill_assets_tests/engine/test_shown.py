"""What `diff` has found of a plan is kept with it, until a file that it has read is another."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.batch_inputs import published_table
from backfill_assets.engine.plans.comparing import shown_once
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.review.compared import Shown
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.warehouse.compare.compare_rows import compare_rows
from backfill_assets.warehouse.compare.comparison_sql import Compared, Question
from backfill_assets_tests.builders import a_source, days
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_contract import DOUBLED
from backfill_assets_tests.engine.test_plans import OLD, ROWS, VISITS
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets_tests.engine.world import World


def test_the_same_question_is_answered_from_the_store_until_a_file_is_another(world: World):
    plans, asked = Plans(world), list[Question]()
    world.begin(OLD, *ROWS)
    plan = plans.make(DOUBLED)
    plans.apply(DOUBLED, plan)

    def shown(question: Question, rows: int = 3) -> Shown:
        op = Operation(project=plans.project(DOUBLED), plan=plan)
        sides = (published_table(run, VISITS) for run in (op.environment(), op.workspace()))
        both = Compared(op.workspace().graph.model(VISITS), *sides)

        def ask() -> Shown:
            asked.append(question)
            found = compare_rows(both, question)
            return Shown(found.comparison(), found.differences(rows))

        return shown_once(world.store, plan.plan_id, both, (question, rows), ask)

    cells = IntervalSet.of(days(7, 8, 9, 10))
    first = shown(Question(cells=cells, profile=True))
    assert [group.rows_changed for group in first.comparison.groups] == [1, 1, 1, 1]
    assert shown(Question(cells=cells, profile=True)) == first
    assert len(asked) == 1
    shown(Question(cells=cells))
    shown(Question(cells=cells), rows=1)
    shown(Question(cells=cells, tolerances=(("cost", "99"),)))
    assert len(asked) == 4
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))
    world.fill(OLD)
    assert shown(Question(cells=cells, profile=True)) == first  # another day is no file of these
    assert len(asked) == 4
    plans.promote(DOUBLED, plan)
