from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from itertools import accumulate

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals import Interval, IntervalSet
from backfill_assets.models.audit import not_null
from backfill_assets.models.column import Column
from backfill_assets.models.content import Content
from backfill_assets.planning.change.compared import Group, Measure
from backfill_assets.planning.change.strategies import RISK, SIGNAL, propose
from backfill_assets.planning.change.strategy_checks import (
    CheckedContents,
    CheckResult,
    Expected,
    check,
    declared_coverage,
    in_doubt,
    shared_time,
)
from backfill_assets.planning.plan.plan import Build, Change
from backfill_assets.planning.plan.request import Category, Strategy
from backfill_assets_tests.builders import COLUMNS, a_model, day, days

Cells = dict[Interval, Content]
NONE = IntervalSet.empty()
NOTHING = Expected(rows=False, columns=frozenset())


def a_content(rows: int = 10, key: int = 1, **columns: int) -> Content:
    return Content(rows, key, {"id": 5, "cost": 7, **columns})


def a_history(cells: int = 4) -> Cells:
    return {day(number): a_content(key=number) for number in range(1, cells + 1)}


def edited(cells: Cells, number: int, content: Content) -> Cells:
    return {**cells, day(number): content}


def of_the_release_before(cells: Cells) -> Cells:
    """The same content, its cost a float that was rounded before it was hashed."""
    return {
        cell: content.as_rounded(frozenset({"cost"}), "b1", key=False)
        for cell, content in cells.items()
    }


Lengths = list[tuple[int, bool]]
day_numbers = st.integers(1, 25)


def cells_of(lengths: Lengths) -> list[range]:
    """Give cells of so many days each, one after the other; some are not there."""
    starts = accumulate((length for length, _ in lengths), initial=1)
    return [
        range(start, start + length)
        for start, (length, is_there) in zip(starts, lengths, strict=False)
        if is_there
    ]


def days_in(cells: list[range]) -> set[int]:
    return {number for each in cells for number in each}


def held(cells: list[range]) -> Cells:
    return {Interval(day(each[0]).start, day(each[-1]).end): a_content() for each in cells}


def stops(*results: CheckResult) -> list[str]:
    return [result.name for result in results if not result.passed]


@pytest.mark.parametrize(
    ("build", "change", "category", "strategy"),
    [
        (Build.NEW_VERSION, Change.MODIFIED, Category.BREAKING, Strategy.FULL_REBUILD),
        (Build.NEW_VERSION, Change.ADDED, Category.NON_BREAKING, Strategy.FULL_REBUILD),
        (Build.NEW_VERSION, Change.INDIRECT, Category.BREAKING, Strategy.FULL_REBUILD),
        (Build.NEW_VERSION, Change.MODIFIED, Category.NON_BREAKING, Strategy.COLUMN_ENRICHMENT),
        (Build.IN_PLACE, Change.UNCHANGED, None, Strategy.PARTITION_REPAIR),
        (Build.GAP_FILL, Change.UNCHANGED, None, None),
        (Build.POINTER, Change.MODIFIED, Category.METADATA, None),
    ],
)
def test_the_strategy_follows_from_what_is_built_where(
    build: Build, change: Change, category: Category | None, strategy: Strategy | None
):
    assert propose(build=build, change=change, category=category) is strategy


def test_new_columns_beside_changed_inputs_are_no_enrichment():
    found = propose(
        build=Build.NEW_VERSION,
        change=Change.MODIFIED,
        category=Category.NON_BREAKING,
        inputs_changed=True,
    )
    assert found is Strategy.FULL_REBUILD


@pytest.mark.parametrize("asked", Strategy)
def test_a_person_may_choose_another_where_something_is_built(asked: Strategy):
    def chosen(build: Build) -> Strategy | None:
        return propose(build=build, change=Change.MODIFIED, category=None, asked=asked)

    assert chosen(Build.NEW_VERSION) is chosen(Build.IN_PLACE) is asked
    assert chosen(Build.POINTER) is None


def test_every_strategy_names_its_risk_and_its_signal():
    assert RISK.keys() == SIGNAL.keys() == {*Strategy}


@pytest.mark.parametrize("strategy", Strategy)
@given(number=st.integers(0, 5))
def test_a_history_that_stays_equal_passes_every_check(strategy: Strategy, number: int):
    cells = a_history(number)
    assert not stops(*check(strategy, CheckedContents(cells, cells, days(2), NOTHING)))


def test_a_repair_keeps_its_neighbours_byte_for_byte():
    before = a_history()
    repaired = edited(before, 2, a_content(rows=0, key=0))
    leaked = edited(repaired, 4, a_content(key=4, cost=8))

    good = check(Strategy.PARTITION_REPAIR, CheckedContents(before, repaired, days(2)))
    bad = check(Strategy.PARTITION_REPAIR, CheckedContents(before, leaked, days(2)))

    assert [result.text for result in good] == [
        "30 rows = 30 that stay + 0 repaired",
        "3 cells outside the plan: equal byte for byte",
    ]
    assert stops(*bad) == ["neighbours equal"]
    assert "1 cell outside the plan: not as before, 2024-01-04" in bad[1].text


def test_a_repair_that_loses_a_cell_or_rows_elsewhere_does_not_fit():
    before = a_history()
    lost = {cell: content for cell, content in before.items() if cell != day(4)}
    fewer = edited(before, 4, a_content(rows=9, key=4))

    for after in (lost, fewer):
        found = check(Strategy.PARTITION_REPAIR, CheckedContents(before, after, days(2)))
        assert "counts fit" in stops(*found)


def test_an_enrichment_changes_nothing_but_what_is_new():
    before = a_history()
    more = {
        cell: replace(content, columns={**content.columns, "n": 3})
        for cell, content in before.items()
    }
    changed = edited(more, 3, a_content(key=3, cost=8, n=3))
    rows = edited(more, 3, a_content(rows=11, key=3, n=3))

    def found(after: Cells, expected: Expected = NOTHING) -> list[CheckResult]:
        compared = CheckedContents(before, after, days(1, 2, 3, 4), expected)
        return list(check(Strategy.COLUMN_ENRICHMENT, compared))

    assert not stops(*found(more))
    assert stops(*found(changed)) == stops(*found(rows)) == ["all else equal"]
    assert "cost differs in 1 cell, 2024-01-03" in found(changed)[0].text
    assert "the rows differ in 1 cell" in found(rows)[0].text
    late = replace(NOTHING, cells=days(3))
    assert stops(*found(changed, late)) == ["all else equal"]  # also where its input had changed


@pytest.mark.parametrize(
    ("coverage", "passes"),
    [
        ({"n": (1.0, 1.0)}, True),
        ({"n": (0.95, 0.9)}, True),
        ({"n": (0.01, 0.0)}, True),
        ({"n": (0.0, 0.0)}, False),
        ({"n": (0.95, 1.0)}, False),
        ({"n": (1.0, 1.0), "m": (0.0, 0.0)}, False),
        ({}, True),
    ],
)
def test_a_new_column_has_its_declared_coverage(
    coverage: dict[str, tuple[float, float]],
    passes: bool,  # noqa: FBT001
):
    compared = CheckedContents({}, {}, NONE, NOTHING, coverage)
    assert check(Strategy.COLUMN_ENRICHMENT, compared)[1].passed is passes


def test_coverage_is_declared_by_nullability_or_an_audit():
    model = a_model(
        columns=[*COLUMNS[:-1], replace(COLUMNS[-1], nullable=False), Column("n", "int"), Column("m", "int")],
        audits=[not_null("n", allowed=0.25)],
    )  # fmt: skip
    found = [declared_coverage(model, name) for name in ("cost", "n", "m")]
    assert found == [1.0, 0.75, 0.0]


def test_a_full_rebuild_reconciles_what_the_change_does_not_explain():
    before = a_history(10)
    cost = {
        cell: replace(content, columns={**content.columns, "cost": 8})
        for cell, content in before.items()
    }
    both = {cell: replace(content, columns={"id": 6, "cost": 8}) for cell, content in cost.items()}
    explained = Expected(rows=False, columns=frozenset({"cost"}))

    def found(after: Cells) -> list[CheckResult]:
        compared = CheckedContents(before, after, days(*range(1, 11)), explained)
        return list(check(Strategy.FULL_REBUILD, compared))

    assert not stops(*found(cost))
    assert stops(*found(both)) == ["trend reconciles"]
    assert "id differs in 10 cells, 2024-01-01" in found(both)[1].text
    once = edited(cost, 7, replace(cost[day(7)], columns={"id": 6, "cost": 8}))
    assert stops(*found(once)) == ["trend reconciles"]  # the edit explains its own column alone
    overtaken = replace(explained, cells=days(*range(1, 11)))  # what they read changed anyway
    compared = CheckedContents(before, both, days(1), overtaken)
    assert not stops(*check(Strategy.FULL_REBUILD, compared))
    fewer = edited(cost, 2, a_content(rows=4, key=2))
    assert stops(*found(fewer)) == ["totals reconcile", "trend reconciles"]
    assert found(fewer)[0].text == "100 rows before, 94 after (-6.00%)"


def test_a_change_of_rows_explains_another_total_but_never_an_empty_history():
    before = a_history()
    fewer = {cell: a_content(rows=1, key=9) for cell in before}
    empty = {cell: a_content(rows=0, key=0) for cell in before}

    good = check(Strategy.FULL_REBUILD, CheckedContents(before, fewer, days(1)))
    bad = check(Strategy.FULL_REBUILD, CheckedContents(before, empty, days(1)))

    assert not stops(*good)
    assert "explained by the change" in good[0].text
    assert stops(*bad) == ["totals reconcile"]


def _decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


@pytest.mark.parametrize(
    ("explained", "totals", "passes"),
    [
        ({"cost"}, {"cost": ("10", "12"), "id": ("3", "3")}, True),
        ({"cost"}, {"cost": ("10", "12"), "id": ("3", "4")}, False),
        ({"cost"}, {"cost": ("10", None)}, False),
        (None, {"cost": ("10", "12"), "id": ("3", "4")}, True),
        (None, {"cost": ("10", None)}, False),
        (None, {"cost": (None, "10")}, True),
    ],
)
def test_metrics_reconcile_but_for_what_the_change_explains(
    explained: set[str] | None,
    totals: dict[str, tuple[str | None, str | None]],
    passes: bool,  # noqa: FBT001
):
    sums = {name: (_decimal(before), _decimal(after)) for name, (before, after) in totals.items()}
    columns = None if explained is None else frozenset(explained)
    expected = Expected(rows=explained is None, columns=columns)
    compared = CheckedContents(a_history(), a_history(), NONE, expected, totals=sums)
    (found,) = (
        result
        for result in check(Strategy.FULL_REBUILD, compared)
        if result.name == "metrics reconcile"
    )
    assert found.passed is passes


@given(
    *[st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=8)] * 2, st.sets(day_numbers)
)
def test_time_is_shared_where_whole_cells_of_both_sides_tile_it(
    old: Lengths, new: Lengths, excepted: set[int]
):
    before, after = cells_of(old), cells_of(new)
    shared = (days_in(before) & days_in(after)) - excepted
    while (
        cut := {
            number for cell in (*before, *after) for number in cell if not shared.issuperset(cell)
        }
        & shared
    ):
        shared -= cut

    found = shared_time(held(before), held(after), days(*sorted(excepted)))

    assert found == days(*sorted(shared))


def test_rows_of_days_that_became_weeks_are_summed_over_the_days_that_whole_weeks_hold():
    week = Interval(day(2).start, day(8).end)
    good, bad = (
        check(
            Strategy.FULL_REBUILD,
            CheckedContents(a_history(9), {week: a_content(rows)}, IntervalSet.of([week]), NOTHING),
        )
        for rows in (70, 69)
    )
    assert good[0].text == "70 rows before, 70 after (+0.00%)"
    assert (stops(*good), stops(*bad)) == ([], ["totals reconcile"])


def test_the_first_history_of_a_model_has_nothing_to_reconcile_with():
    found = check(Strategy.FULL_REBUILD, CheckedContents({}, a_history(), days(1, 2, 3, 4)))
    assert not stops(*found)


def test_a_dual_run_stops_at_the_first_difference_that_is_not_explained():
    before = a_history()
    after = edited(before, 2, a_content(key=2, cost=8))

    def found(*columns: str) -> tuple[CheckResult, ...]:
        expected = Expected(rows=False, columns=frozenset(columns))
        return check(Strategy.DUAL_RUN, CheckedContents(before, after, days(2), expected))

    assert not stops(*found("cost"))
    assert stops(*found("id")) == ["every difference explained"]


def counted(added: int, removed: int, *changed: str) -> Group:
    columns = {name: Measure(1, 9, 9, None, None) for name in changed}
    return Group((), 9, 9, added, removed, len(changed), columns)


@pytest.mark.parametrize(
    "strategy", [strategy for strategy in Strategy if strategy is not Strategy.PARTITION_REPAIR]
)
def test_rounded_checksums_neither_refuse_what_is_equal_nor_pass_what_differs(strategy: Strategy):
    after = a_history()
    for before, now in (
        (of_the_release_before(after), after),
        (after, of_the_release_before(after)),
    ):
        doubt = in_doubt(before, now, NOTHING)
        assert doubt == days(1, 2, 3, 4)
        equal = {cell: counted(0, 0) for cell in before}
        other = {**equal, day(3): counted(0, 0, "cost")}
        compared = CheckedContents(before, now, days(1, 2, 3, 4), NOTHING)
        assert not stops(*check(strategy, replace(compared, looked=equal)))
        assert stops(*check(strategy, replace(compared, looked=other)))


def test_cells_of_one_release_are_compared_by_their_checksums_alone():
    before = a_history()
    changed = edited(before, 2, a_content(key=2, cost=8))
    assert not in_doubt(before, changed, NOTHING)
    old = of_the_release_before(before)
    assert not in_doubt(old, edited(old, 2, replace(old[day(2)], rows=9)), NOTHING)


@pytest.mark.parametrize(
    ("rows", "passes"),
    [
        (counted(0, 3), True),
        (counted(0, 3, "cost"), False),
        (counted(1, 4), False),
        (counted(0, 2), False),
    ],
    ids=["gone", "gone, and another value", "one is new", "counts that do not fit"],
)
def test_rows_that_are_dropped_excuse_missing_rows_and_nothing_else(
    rows: Group,
    passes: bool,  # noqa: FBT001
):
    before = a_history()
    after = edited(before, 2, a_content(rows=7, key=9, cost=8, id=6))
    dropping = replace(NOTHING, missing=True)
    assert in_doubt(before, after, dropping) == days(2)
    compared = CheckedContents(before, after, days(1, 2, 3, 4), dropping, looked={day(2): rows})
    for strategy in (Strategy.FULL_REBUILD, Strategy.DUAL_RUN):
        assert bool(stops(*check(strategy, compared))) is not passes
    kept = replace(compared, expected=NOTHING)
    assert "trend reconciles" in stops(*check(Strategy.FULL_REBUILD, kept))
