from __future__ import annotations

from dataclasses import replace

from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.planning.plan.plan import InFlight, Plan
from backfill_assets.planning.plan.request import KeptRows
from backfill_assets.planning.review.acceptance import with_acceptances
from backfill_assets.planning.review.contract import (
    Expectation,
    OnlyColumns,
    RowChange,
    RowsWithin,
)
from backfill_assets.render.plan_life import check_text, checks_markdown
from backfill_assets.render.plan_markdown import plan_markdown
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
from backfill_assets.render.plan_text import plan_text
from backfill_assets.snapshots.plan_check import Acceptance, PlanCheck
from backfill_assets_tests.render.plans import (
    DAYS,
    NAMING,
    NOON,
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

    table = InFlight(ROI, IntervalSet.empty(), "plan p1", blocks=True)
    (apart,) = (each for each in sections(a_plan(in_flight=(table,))) if isinstance(each, AtWork))
    first, second = (section for section in sections(plan) if isinstance(section, AtWork))

    blocked = "this plan can't be applied before the other plan has ended"
    assert first.blocks
    assert first.others == ((ROI, f"2024-05-30..2024-05-31 (2): plan p0; {blocked}"),)
    assert apart.others == ((ROI, f"(its table): plan p1; {blocked}"),)
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


def test_what_is_expected_is_said_in_every_form_and_by_whom():
    rules = (
        Expectation(PERFORMANCE, "only clicks differs", OnlyColumns(("clicks",)), "ada"),
        Expectation(PERFORMANCE, "no row is added", RowsWithin(RowChange.ADDED, 0.0), "ada"),
        Expectation(ROI, "no column differs", OnlyColumns(())),
    )
    plan = replace(added_columns(), contract=rules)
    text = "\n".join(line.text for line in plan_text(plan, NAMING))
    assert f"Expected  {PERFORMANCE}: only clicks differs; no row is added (decided by ada)" in text
    assert f"Expected  {ROI}: no column differs (decided by planner)" in text
    markdown = plan_markdown(plan, NAMING)
    assert "### Expected changes" in markdown
    assert f"- `{ROI}`: no column differs (decided by planner)" in markdown


def test_a_check_says_what_it_found_and_whether_that_is_accepted():
    failed = PlanCheck(
        ROI, "no row is added", passed=False, text="found 1 of 3 rows", decided_by="ada"
    )
    accepted = Acceptance(
        plan_id="p1", model=ROI, check=failed.check, text=failed.text, basis="", reason="new shop",
        who="bob", at=NOON,
    )  # fmt: skip
    [known] = with_acceptances([failed], [accepted])
    assert check_text(failed) == "✗ no row is added: found 1 of 3 rows (ada)"
    assert check_text(known, [accepted]) == (
        "≈ no row is added: found 1 of 3 rows; accepted by bob: new shop (ada)"
    )
    moved = replace(failed, text="found 2 of 3 rows")
    assert "no longer accepted by bob: new shop (then: found 1 of 3 rows)" in check_text(
        moved, [accepted]
    )
    assert checks_markdown([], []) == ""
    assert f"- `{ROI}`: ✗ no row" in checks_markdown([failed], [])
