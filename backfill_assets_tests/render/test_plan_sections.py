from __future__ import annotations

from dataclasses import replace

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.plan import InFlight, Plan
from backfill_assets.planning.plan.request import KeptRows
from backfill_assets.render.plan_sections import (
    AtWork,
    Changes,
    Fact,
    LeftAlone,
    Section,
    Signs,
    Stages,
    Strategies,
    Texts,
    Title,
    Work,
    plan_sections,
)
from backfill_assets_tests.render.plans import (
    DAYS,
    NAMING,
    PERFORMANCE,
    ROI,
    a_plan,
    added_columns,
    restated,
    span,
)


def sections(plan: Plan, ranges: int = 3) -> list[Section]:
    return [*plan_sections(plan, NAMING, ranges)]


def work_of(plan: Plan, ranges: int = 3) -> Work:
    return next(section for section in sections(plan, ranges) if isinstance(section, Work))


def test_the_sections_of_a_plan_have_one_order():
    assert [type(section) for section in sections(added_columns())] == [
        *(Title, Fact, Fact, Changes, Work, LeftAlone, AtWork, Fact, Strategies),
        *(Texts, Fact, Texts, Stages, Signs),
    ]


def test_what_there_is_nothing_to_say_about_is_left_out():
    found = sections(a_plan(rollback="", gates=()))

    assert [type(section) for section in found] == [Title, Fact, Fact, Stages, Signs]


def test_a_model_that_is_only_restated_has_no_change():
    assert not any(isinstance(section, Changes) for section in sections(restated()))


def test_who_is_in_the_way_comes_before_who_is_merely_at_work():
    cells = span(DAYS, "2024-05-30", "2024-05-31")
    plan = a_plan(
        in_flight=(
            InFlight(PERFORMANCE, cells, "run cli-77", blocks=False),
            InFlight(ROI, cells, "plan p0", blocks=True),
        )
    )

    first, second = (one for one in sections(plan) if isinstance(one, AtWork))

    blocked = "this plan can't be applied before that one has ended"
    assert first.blocks
    assert first.others == ((ROI, f"2024-05-30..2024-05-31 (2): plan p0; {blocked}"),)
    assert not second.blocks
    assert second.others == ((PERFORMANCE, "2024-05-30..2024-05-31 (2): run cli-77"),)


def test_the_work_of_a_model_warns_of_rows_that_only_history_has():
    model = replace(added_columns().models[0], kept_rows=KeptRows.CARRY, notes=("a note",))

    assert work_of(a_plan(model)).models[0].warnings == (
        "rows whose source is gone: carry",
        "a note",
    )


def test_more_ranges_than_asked_for_are_counted():
    odd = IntervalSet.union_all(
        span(DAYS, each, each) for each in ("2024-01-01", "2024-01-03", "2024-01-05")
    )
    model = added_columns().models[0]
    plan = a_plan(replace(model, work=(replace(model.work[0], cells=odd),)))

    few, all_of_them = (work_of(plan, ranges).models[0].cells[0] for ranges in (1, 3))

    assert (few.count, all_of_them.count) == (3, 3)
    assert "2024-01-05" not in few.text
    assert "2024-01-05" in all_of_them.text
