"""A contract is judged as an oracle judges it that looks at every row of both tables."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily, Interval, IntervalSet, Monthly
from backfill_assets.intervals.cadence import Yearly
from backfill_assets.models.column import Column
from backfill_assets.planning.change.compared import Group, Measure
from backfill_assets.planning.review.contract import (
    PLANNER,
    Expectation,
    NullsWithin,
    OnlyCells,
    OnlyColumns,
    Per,
    RowChange,
    RowsWithin,
    Rule,
    SumWithin,
)
from backfill_assets.planning.review.contract_judging import CellFound, Found, judge
from backfill_assets.planning.review.contract_text import (
    expectations,
    expectations_of_toml,
    written_expectations,
)
from backfill_assets_tests.builders import a_model

if TYPE_CHECKING:
    from backfill_assets.planning.change.strategy_checks import CheckResult

DAYS = Daily(start="2024-01-30")
CELLS = tuple(DAYS.cells(Interval(DAYS.cell("2024-01-30").start, DAYS.cell("2024-02-02").end)))
COLUMNS = ("cost", "clicks")
Rows = dict[tuple[int, int], dict[str, int | None]]  # (cell, key): values

_rows = st.dictionaries(
    st.tuples(st.integers(0, 3), st.integers(1, 3)),
    st.fixed_dictionaries(dict.fromkeys(COLUMNS, st.integers(-3, 9) | st.none())),
    max_size=8,
)
_percents = st.sampled_from([0.0, 0.5, 10.0, 33.0, 50.0, 100.0])
_rules: st.SearchStrategy[Rule] = st.one_of(
    st.builds(OnlyColumns, st.sampled_from([(), ("cost",), ("clicks",), COLUMNS])),
    st.builds(RowsWithin, st.sampled_from(RowChange), _percents),
    st.builds(
        SumWithin,
        st.sampled_from(COLUMNS),
        _percents,
        st.sampled_from([per for per in Per if per is not Per.GROUP]),
    ),
    st.builds(
        SumWithin,
        st.sampled_from(COLUMNS),
        _percents,
        st.just(Per.GROUP),
        st.just("id"),
        st.lists(st.tuples(st.sampled_from("123"), _percents), unique_by=lambda own: own[0]).map(
            tuple
        ),
    ),
    st.builds(
        OnlyCells, st.lists(st.sampled_from(CELLS), max_size=3, unique=True).map(IntervalSet.of)
    ),
    st.builds(NullsWithin, st.sampled_from(COLUMNS), _percents),
)


def differing(old: Rows, new: Rows, column: str) -> set[tuple[int, int]]:
    return {at for at in old.keys() & new.keys() if old[at][column] != new[at][column]}


def ways(old: Rows, new: Rows) -> dict[RowChange, set[tuple[int, int]]]:
    return {
        RowChange.CHANGED: {at for column in COLUMNS for at in differing(old, new, column)},
        RowChange.ADDED: new.keys() - old.keys(),
        RowChange.REMOVED: old.keys() - new.keys(),
    }


def measures(before: Rows, after: Rows) -> dict[str, Measure]:
    return {
        name: Measure(
            changed=len(differing(before, after, name)),
            old_filled=sum(row[name] is not None for row in before.values()),
            new_filled=sum(row[name] is not None for row in after.values()),
            old_sum=Decimal(sum(row[name] or 0 for row in before.values())),
            new_sum=Decimal(sum(row[name] or 0 for row in after.values())),
        )
        for name in COLUMNS
    }


def measured(old: Rows, new: Rows) -> Found:
    """Measure both tables cell by cell, as a comparison does."""
    found: list[CellFound] = []
    for number, cell in enumerate(CELLS):
        before, after = (
            {at: row for at, row in side.items() if at[0] == number} for side in (old, new)
        )
        differ = {way: len(rows) for way, rows in ways(before, after).items()}
        key = DAYS.key(cell)
        group = Group(
            by=(key,),
            old_rows=len(before),
            new_rows=len(after),
            keys_added=differ[RowChange.ADDED],
            keys_removed=differ[RowChange.REMOVED],
            rows_changed=differ[RowChange.CHANGED],
            columns=measures(before, after),
        )
        found.append(CellFound(cell, key, key[:7], group))
    groups = {
        str(number): measures(
            *({at: row for at, row in side.items() if at[1] == number} for side in (old, new))
        )
        for number in {at[1] for at in (*old, *new)}
    }
    afterwards = {
        name: (len(new), sum(row[name] is not None for row in new.values())) for name in COLUMNS
    }
    return Found(tuple(found), len(old), groups={"id": groups}, afterwards=afterwards)


def oracle(rule: Rule, old: Rows, new: Rows) -> bool:
    """Say from the rows alone whether a rule holds."""
    match rule:
        case OnlyColumns(columns):
            return not any(differing(old, new, name) for name in COLUMNS if name not in columns)
        case RowsWithin(way, percent):
            return len(ways(old, new)[way]) <= percent / 100 * len(old)
        case OnlyCells(cells):
            touched = {at[0] for rows in ways(old, new).values() for at in rows}
            return all(CELLS[number] in cells for number in touched)
        case NullsWithin(column, percent):
            return sum(row[column] is None for row in new.values()) <= percent / 100 * len(new)
        case SumWithin(column, percent, per):
            names: dict[Per, Any] = {
                Per.WHOLE: lambda _: "",
                Per.MONTH: lambda at: at[0] < 2,
                Per.CELL: lambda at: at[0],
                Per.GROUP: lambda at: str(at[1]),
            }
            sums: dict[Any, list[int]] = defaultdict(lambda: [0, 0])
            for side, rows in enumerate((old, new)):
                for at, row in rows.items():
                    sums[names[per](at)][side] += row[column] or 0
            own = dict(rule.own)
            return all(
                abs(b - a) * 100 <= own.get(name, percent) * abs(a) for name, (a, b) in sums.items()
            )


@given(old=_rows, new=_rows, rule=_rules)
def test_a_rule_holds_exactly_where_the_rows_say_so(old: Rows, new: Rows, rule: Rule):
    result = judge(Expectation("web.visits", "rule", rule, "ann"), measured(old, new))
    assert result.passed is oracle(rule, old, new)
    assert (
        any(sign.isdigit() for sign in result.text)
        or "no " in result.text
        or "nothing" in result.text
    )


@given(rows=_rows, rule=_rules.filter(lambda rule: not isinstance(rule, NullsWithin)))
def test_equal_tables_keep_every_rule_on_differences(rows: Rows, rule: Rule):
    assert judge(Expectation("web.visits", "rule", rule, "ann"), measured(rows, rows)).passed


def test_what_is_outside_is_counted_in_words():
    old: Rows = {(0, key): {"cost": 1, "clicks": 1} for key in (1, 2, 3)}
    new: Rows = {(0, key): {"cost": 2, "clicks": key} for key in (1, 2, 4)}
    found = measured(old, new)

    def said(rule: Rule) -> str:
        return judge(Expectation("web.visits", "rule", rule, "ann"), found).text

    assert said(OnlyColumns(("clicks",))) == "found 2 rows of cost"
    assert said(RowsWithin(RowChange.ADDED, 0)) == "found 1 of 3 rows, 33.33%"
    assert said(SumWithin("cost", 10, Per.MONTH)) == "found +100.00% in 2024-01: 3 before, 6 after"
    assert said(OnlyCells(IntervalSet.empty())) == "found 1 other cell, 2024-01-30 first"


def _exact(total: int | None) -> Decimal | None:
    return None if total is None else Decimal(total)


def sums(*cells: tuple[int | None, int | None]) -> Found:
    """A comparison in which only the sums of cost are known: per cell, before and after."""
    found = measured({}, {})
    measures_of = [Measure(0, 1, 1, _exact(before), _exact(after)) for before, after in cells]
    with_sums = tuple(
        replace(cell, rows=replace(cell.rows, columns={"cost": measure}))
        for cell, measure in zip(found.cells, measures_of, strict=False)
    )
    return replace(found, cells=with_sums)


@pytest.mark.parametrize(
    ("found", "per", "passed", "said"),
    [
        (sums((100, 100), (100, 109)), Per.CELL, True,
         "at most +9.00% in 2024-01-31: 100 before, 109 after"),
        (sums((100, 120), (100, 50), (0, 1)), Per.CELL, False,
         "found a sum where none was in 2024-02-01: 0 before, 1 after; and 2 other cells"),
        (sums((100, 120), (100, 50)), Per.CELL, False,
         "found -50.00% in 2024-01-31: 100 before, 50 after; and 1 other cell"),
        (sums((100, 80), (100, 100)), Per.CELL, False,
         "found -20.00% in 2024-01-30: 100 before, 80 after"),
        (sums((-100, -120)), Per.CELL, False,
         "found -20.00% in 2024-01-30: -100 before, -120 after"),
        (sums((100, 150), (100, 60)), Per.MONTH, True,
         "at most +5.00% in 2024-01: 200 before, 210 after"),
        (sums((100, 150), (100, 60), (5, 5)), Per.WHOLE, True,
         "found +4.88%: 205 before, 215 after"),
        (sums((0, 0)), Per.WHOLE, True, "found no difference: 0 before, 0 after"),
        (sums((None, 3)), Per.WHOLE, False, "found no sum: none before, 3 after"),
        (sums((3, None)), Per.WHOLE, False, "found no sum: 3 before, none after"),
        (sums(), Per.WHOLE, True, "found nothing to compare with"),
        (sums((100, 100)), Per.GROUP, True, "found nothing to compare with"),
    ],
)  # fmt: skip
def test_of_sums_the_farthest_is_said(found: Found, per: Per, passed: bool, said: str):  # noqa: FBT001
    rule = SumWithin("cost", 10, per, "id" if per is Per.GROUP else "")

    result = judge(Expectation("web.visits", "rule", rule, "ann"), found)

    assert (result.passed, result.text) == (passed, said)


def test_a_sum_that_is_outside_its_own_limit_is_said_before_one_that_moved_farther():
    rule = SumWithin("cost", 10, Per.CELL, "", (("2024-01-30", 1),))

    result = judge(Expectation("web.visits", "rule", rule, "ann"), sums((100, 105), (100, 109)))

    assert not result.passed
    assert result.text == "found +5.00% in 2024-01-30: 100 before, 105 after"


def test_a_sum_is_compared_in_the_cells_that_have_its_column():
    rows: Rows = {(0, 1): {"cost": 1, "clicks": 1}}
    found = measured(rows, {(0, 1): {"cost": 1, "clicks": 2}})
    first = replace(found.cells[0], rows=replace(found.cells[0].rows, columns={}))
    rule = Expectation("web.visits", "rule", SumWithin("clicks", 0, Per.WHOLE), "ann")

    assert judge(rule, replace(found, cells=(first, *found.cells[1:]))).passed


@pytest.mark.parametrize(
    ("old", "new", "percent", "passed", "said"),
    [
        (10, 1, 10, True, "found 1 of 10 rows, 10.00%"),
        (10, 1, 9.99, False, "found 1 of 10 rows, 10.00%"),
        (10, 0, 0, True, "found 0 of 10 rows"),
        (0, 1, 10, False, "found 1 of 0 rows"),
    ],
)
def test_rows_are_counted_as_a_share_of_all_that_were_published(
    old: int,
    new: int,
    percent: float,
    passed: bool,  # noqa: FBT001
    said: str,
):
    found = replace(
        measured({}, {(0, key): {"cost": 1, "clicks": 1} for key in range(new)}), old_rows=old
    )
    rule = Expectation("web.visits", "rule", RowsWithin(RowChange.ADDED, percent), "ann")

    result = judge(rule, found)

    assert (result.passed, result.text) == (passed, said)


SAME = Measure(0, 1, 1, Decimal(5), Decimal(5))


@pytest.mark.parametrize(
    ("edit", "differs"),
    [({}, False), ({"changed": 1}, True), ({"new_filled": 2}, True), ({"new_sum": None}, True)],
)
def test_a_column_differs_by_a_value_by_how_many_there_are_or_by_their_sum(
    edit: dict[str, Any],
    differs: bool,  # noqa: FBT001
):
    assert replace(SAME, **edit).differs is differs


@pytest.mark.parametrize("way", ["", "keys_added", "keys_removed", "rows_changed"])
def test_a_cell_differs_by_rows_that_come_go_or_change(way: str):
    counts = dict.fromkeys(("keys_added", "keys_removed", "rows_changed"), 0)
    group = Group((), 1, 1, **{**counts, **({way: 1} if way else {})}, columns={"cost": SAME})
    assert group.differs is bool(way)


def test_columns_outside_are_said_by_how_many_rows_they_differ_in():
    old: Rows = {(0, key): {"cost": 1, "clicks": 1} for key in (1, 2)}
    new: Rows = {(0, 1): {"cost": 2, "clicks": 1}, (0, 2): {"cost": 2, "clicks": 3}}
    found = replace(measured(old, new), added=("profit", "fees"), removed=("views", "pages"))
    alike = measured(old, {**old, (0, 1): {"cost": 2, "clicks": 2}})

    def said(found: Found, *columns: str) -> str:
        return judge(Expectation("web.visits", "rule", OnlyColumns(columns), "ann"), found).text

    assert said(found, "profit", "views") == (
        "found 2 rows of cost, 1 row of clicks, the new column fees, pages gone"
    )
    assert said(found, "profit", "fees", "views", "pages", "cost", "clicks") == (
        "found 2 rows of cost, 1 row of clicks"
    )
    assert said(alike) == "found 1 row of clicks, 1 row of cost"


def test_cells_outside_are_counted_and_the_first_is_named():
    old: Rows = {(number, 1): {"cost": 1, "clicks": 1} for number in range(3)}
    new: Rows = {(number, 1): {"cost": 2, "clicks": 1} for number in range(3)}
    found = measured(old, new)
    backwards = replace(found, cells=found.cells[::-1])

    def said(cells: IntervalSet) -> str:
        return judge(Expectation("web.visits", "rule", OnlyCells(cells), "ann"), backwards).text

    assert said(IntervalSet.of(CELLS[:1])) == "found 2 other cells, 2024-01-31 first"
    assert said(IntervalSet.of(CELLS[:3])) == "found 3 cells that differ"


@pytest.mark.parametrize(
    ("afterwards", "passed", "said"),
    [
        ({"cost": (8, 6)}, True, "found 2 of 8 rows, 25.00%"),
        ({"cost": (8, 5)}, False, "found 3 of 8 rows, 37.50%"),
        ({"cost": (8, 8)}, True, "found 0 of 8 rows"),
        ({}, True, "found 0 of 0 rows"),
    ],
)
def test_null_values_are_counted_in_all_rows_afterwards(
    afterwards: dict[str, tuple[int, int]],
    passed: bool,  # noqa: FBT001
    said: str,
):
    rule = Expectation("web.visits", "rule", NullsWithin("cost", 25), "ann")

    result = judge(rule, replace(measured({}, {}), afterwards=afterwards))

    assert (result.passed, result.text) == (passed, said)


def test_a_column_of_another_type_is_a_change_of_it():
    rows: Rows = {(0, 1): {"cost": 1, "clicks": 1}}
    found = replace(measured(rows, rows), retyped=(("cost", "int", "string"),))

    def judged(*columns: str) -> CheckResult:
        return judge(Expectation("web.visits", "rule", OnlyColumns(columns), "ann"), found)

    assert judged("cost").passed
    assert not judged("clicks").passed
    assert judged("clicks").text == "found cost as string instead of int"


def test_a_proof_of_the_planner_is_not_about_cells_that_differ_for_another_reason():
    old: Rows = {(0, 1): {"cost": 1, "clicks": 1}}
    new: Rows = {(0, 1): {"cost": 2, "clicks": 1}}
    found = measured(old, new)
    late = Found(found.cells, 1, explained=IntervalSet.of(CELLS[:1]))
    for who, passes in ((PLANNER, True), ("ann", False)):
        rule = Expectation("web.visits", "rule", OnlyColumns(()), who)
        assert judge(rule, late).passed is passes
    said = judge(Expectation("web.visits", "rule", OnlyColumns(()), PLANNER), late).text
    assert said == "found no value that differs, besides 1 cell with corrected input"


def test_cells_that_were_appended_are_no_other_cells():
    old: Rows = {(0, 1): {"cost": 1, "clicks": 1}}
    found = measured(old, {(0, 1): {"cost": 2, "clicks": 1}})
    rule = Expectation("web.visits", "rule", OnlyCells(IntervalSet.empty()), "ann")
    assert not judge(rule, found).passed
    assert judge(rule, Found(found.cells, 1, appended=IntervalSet.of(CELLS[:1]))).passed


def read(text: str, **declared: Any) -> dict[str, Rule]:  # noqa: ANN401
    model = a_model(cadence=DAYS, **declared)
    texts = [rule for _, rule in written_expectations([f"web.visits: {text}"])]
    return {each.check: each.rule for each in expectations(model, model, texts, "ann")}


def test_rules_are_read_as_people_write_them():
    cells = IntervalSet.of([Interval(DAYS.cell("2024-02-01").start, DAYS.cell("2024-02-03").end)])
    assert read(
        "Only  COST; rows within 2 %; cost within 0.5% a month; cells 2024-02-01..2024-02-03"
    ) == {
        "only cost differs": OnlyColumns(("cost",)),
        "at most 2% of rows changed": RowsWithin(RowChange.CHANGED, 2),
        "at most 2% of rows added": RowsWithin(RowChange.ADDED, 2),
        "at most 2% of rows removed": RowsWithin(RowChange.REMOVED, 2),
        "sum of cost within 0.5% a month": SumWithin("cost", 0.5, Per.MONTH),
        "only cells 2024-02-01..2024-02-03 (3) differ": OnlyCells(cells),
    }
    groups = read(
        "cost within 0.5% a ID, 3% in 7, 10 % in 8; cost within 2% per cell, 0% in 2024-02-01"
    )
    assert groups == {
        "sum of cost within 0.5% a id, 3% in 7, 10% in 8": SumWithin(
            "cost", 0.5, Per.GROUP, "id", (("7", 3), ("8", 10))
        ),
        "sum of cost within 2% a cell, 0% in 2024-02-01": SumWithin(
            "cost", 2, Per.CELL, "", (("2024-02-01", 0),)
        ),
    }
    assert read("cost null within 1%; cost within 3%") == {
        "cost NULL in at most 1% of rows": NullsWithin("cost", 1),
        "sum of cost within 3%": SumWithin("cost", 3, Per.WHOLE),
    }


@pytest.mark.parametrize("dtype", ["NUMERIC(18, 2)", "long", "real"])
def test_a_number_is_one_in_every_spelling_of_its_type(dtype: str):
    columns = (*a_model().schema[:2], Column("cost", dtype))
    assert [*read("cost within 1%", columns=columns)] == ["sum of cost within 1%"]


def test_only_some_columns_means_that_no_row_comes_or_goes_unless_it_is_said():
    assert read("only nothing").keys() == {
        "no column differs", "no row is added", "no row is removed",
    }  # fmt: skip
    assert "no row is added" not in read("only cost; rows added within 1%")


def test_a_file_has_the_same_rules():
    text = 'web.visits = ["only cost", "rows within 2%"]\n"web.costs" = "only nothing"\n'
    assert expectations_of_toml(text, "c.toml") == (
        ("web.visits", "only cost"), ("web.visits", "rows within 2%"), ("web.costs", "only nothing"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("onlyy cost", "Did you mean 'only cost'"),
        ("only cots", "did you mean 'cost'"),
        ("only ds", "ds is of the key"),
        ("discount within 1%", "has no column 'discount'"),
        ("ds within 1%", "of its key"),
        ("rows within 2", "expected one of: only COLUMN"),
        ("cells 2024-02-03..2024-02-01", "2024-02-01"),
        ("cells yesterday", "yesterday"),
        ("only cost; only nothing", "said twice"),
        ("cost within 1% a idd", "did you mean 'id'"),
        ("cost within 1% a id, 3%", "expected one of"),
    ],
)
def test_a_rule_that_cannot_be_read_says_what_was_meant(text: str, said: str):
    with pytest.raises(RequestError, match="--expect") as found:
        read(text)
    assert said in str(found.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("web.visits = 3", "expected a list of rules"),
        ("web.visits = [3]", "expected a list of rules"),
        ("web.visits", "it is no TOML"),
        ('web.visits = [""]', "can't be read"),
    ],
)
def test_a_file_that_is_none_of_rules_is_refused(text: str, said: str):
    with pytest.raises(RequestError, match="--expect") as found:
        expectations_of_toml(text, "c.toml")
    assert said in str(found.value)


def test_a_line_without_a_model_or_a_rule_is_refused():
    for line in ("only cost", "web.visits:", ": only cost", "web.visits: ;"):
        with pytest.raises(RequestError, match=r"MODEL: RULE; RULE, or a file"):
            written_expectations([line])


def test_sums_of_a_month_need_cells_that_are_no_longer():
    monthly = a_model(cadence=Monthly(start="2024-01-01"))
    texts = ["cost within 1% a month"]
    assert len(expectations(monthly, monthly, texts, "ann")) == 1
    yearly = a_model(cadence=Yearly(start="2024-01-01"))
    with pytest.raises(RequestError, match=r"longer than a month; compare the sum a cell"):
        expectations(yearly, yearly, texts, "ann")


def test_sums_are_compared_only_of_columns_that_both_tables_have():
    new = a_model(
        columns=(*a_model().schema, Column("double", "decimal(18,2)")),
        sql="SELECT ds, id, cost, cost * 2 AS double FROM web.events WHERE ds >= :start_ds AND ds < :end_ds",
    )
    with pytest.raises(RequestError, match="both before and afterwards"):
        expectations(new, a_model(), ["double within 1%"], "ann")
    assert expectations(new, a_model(), ["only double"], "ann")[0].check == "only double differs"
