from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn

import pytest
from py4j.protocol import Py4JJavaError

from backfill_assets.errors import RequestError
from backfill_assets.intervals.cadence import Daily, Weekly, Whole
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.column import Column
from backfill_assets.models.kind import Full, IncrementalByTimeRange
from backfill_assets.warehouse.compare.compare import compare, differences, rows_outside
from backfill_assets.warehouse.compare.compare_rows import compare_rows
from backfill_assets.warehouse.compare.comparison_sql import (
    BY_CELL,
    Compared,
    Question,
    comparison_sql,
)
from backfill_assets.warehouse.files.tables import Table, table_now
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.conform import contract
from backfill_assets_tests.warehouse.shop import (
    SALES_COLUMNS,
    commit_cells,
    day,
    days,
    frame,
    sale,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets.models.model import Model

pytestmark = pytest.mark.spark

NOTED = (*SALES_COLUMNS, Column("note", "string"), Column("tags", "map<string,int>"))
RATED = (*SALES_COLUMNS, Column("rate", "double"))


def a_table(spark: SparkSession, path: Path, model: Model, *rows: str, until: int = 4) -> Table:
    cells = [*model.cadence.cells(model.cadence.snap_out(day(1, until)))]
    computed = contract(frame(spark, model.schema, *rows), model)
    commit_cells(computed, model, cells, ticket(str(path), 1))
    return table_now(str(path))


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    """Day 1 equal, day 2 with a value, day 3 with a key and a lost key, day 4 new."""
    root = tmp_path_factory.mktemp("compare")
    old = a_table(
        spark, root / "old", sales(),
        sale(1, "a"), sale(1, "b"), sale(2, "a", 5), sale(2, "b"), sale(3, "a"), sale(3, "b", 7),
    )  # fmt: skip
    new = a_table(
        spark, root / "new", sales(),
        sale(1, "a"), sale(1, "b"), sale(2, "a", 6), sale(2, "b"), sale(3, "a"), sale(3, "c", 7),
        sale(4, "a", 2),
    )  # fmt: skip
    return Compared(sales(), old, new)


@pytest.mark.connect
def test_every_cell_says_what_came_went_and_changed(spark: SparkSession, world: Compared):
    found = compare(spark, world, Question()).cells(world.model)
    counts = {
        cell.start.day: (g.old_rows, g.new_rows, g.keys_added, g.keys_removed, g.rows_changed)
        for cell, g in found.items()
    }
    assert counts == {
        1: (2, 2, 0, 0, 0), 2: (2, 2, 0, 0, 1), 3: (2, 2, 1, 1, 0), 4: (0, 1, 1, 0, 0),
    }  # fmt: skip
    amount = found[day(2)].columns["amount"]
    assert (amount.changed, amount.old_sum, amount.new_sum) == (1, Decimal(6), Decimal(7))


def test_it_is_grouped_by_any_column(spark: SparkSession, world: Compared):
    found = compare(spark, world, Question(by=("shop",)))
    differing = [group for group in found.groups if group.differs]
    assert [(group.by, group.rows_changed) for group in differing] == [
        (("a",), 1), (("b",), 0), (("c",), 0),
    ]  # fmt: skip
    both = compare(spark, world, Question(by=(*BY_CELL, "shop")))
    assert [group.by for group in both.groups if group.differs] == [
        ("2024-01-02", "a"), ("2024-01-03", "b"), ("2024-01-03", "c"), ("2024-01-04", "a"),
    ]  # fmt: skip
    (total,) = compare(spark, world, Question(by=())).groups
    assert (total.old_rows, total.new_rows, total.differs) == (6, 7, True)


def test_it_is_grouped_by_an_expression_and_profiled(spark: SparkSession, world: Compared):
    asked = Question(
        by=("month", "upper(shop)"),
        computed=(("month", "date_format(`_cell`, 'yyyy-MM')"), ("upper(shop)", "upper(shop)")),
        profile=True,
    )
    found = {group.by: group for group in compare(spark, world, asked).groups}
    assert found.keys() == {("2024-01", "A"), ("2024-01", "B"), ("2024-01", "C")}
    amount = found["2024-01", "A"].columns["amount"]
    assert (amount.old_distinct, amount.new_distinct, amount.changed) == (2, 3, 1)
    assert amount.old_percentiles == (1.0, 1.0, 4.6)
    assert found["2024-01", "C"].columns["amount"].old_percentiles is None


@pytest.mark.connect
@pytest.mark.parametrize(
    "question",
    [
        Question(by=("group",), computed=(("group", "map(`shop`, 1)"),)),
        Question(by=("group",), computed=(("group", "CAST(`shop` AS INT)"),)),
        Question(by=("group",), computed=(("group", "`amount`[0]"),)),
        Question(own_tolerances=(("amount", "CAST(`shop` AS INT) = 1", "0.5"),)),
    ],
    ids=["map", "value", "type", "tolerance"],
)
def test_an_expression_that_can_not_be_computed_is_told(
    spark: SparkSession, world: Compared, question: Question
):
    told = r"Spark can't compute an expression that groups rows of commerce\.sales: .*--tolerance"
    for ask in (compare, differences):
        with pytest.raises(RequestError, match=told):
            ask(spark, world, question)


class _SeveralStagesError(Py4JJavaError):
    """What PySpark raises where stages fail at the same time: it has no class of its own for that."""

    def __init__(self) -> None:
        Exception.__init__(self)

    def __str__(self) -> str:
        return "[STAGE_MATERIALIZATION_MULTIPLE_FAILURES] x SQLSTATE: 22018\n 1. [CAST_INVALID_INPUT] why"


def test_an_expression_that_fails_in_several_stages_at_the_same_time_is_told_too(
    spark: SparkSession, world: Compared, monkeypatch: pytest.MonkeyPatch
):
    def fail(_: object) -> NoReturn:
        raise _SeveralStagesError

    monkeypatch.setattr("backfill_assets.warehouse.compare.compare.batch_session", fail)
    with pytest.raises(RequestError, match=r"groups rows of commerce\.sales: .*CAST_INVALID_INPUT"):
        compare(spark, world, Question(computed=(("group", "CAST(`shop` AS INT)"),)))


def test_a_value_within_its_tolerance_is_equal_and_the_most_changed_key_comes_first(
    spark: SparkSession, world: Compared
):
    def changed(tolerance: str) -> int:
        asked = Question(by=(), tolerances=(("amount", tolerance),))
        return compare(spark, world, asked).groups[0].rows_changed

    assert (changed("0.99"), changed("1")) == (1, 0)
    shown = differences(spark, world, Question(), limit=2, most="amount")
    assert [(row.key["shop"], row.change) for row in shown] == [("b", "removed"), ("c", "added")]


def test_some_rows_have_a_tolerance_of_their_own(spark: SparkSession, world: Compared):
    def changed(*own: tuple[str, str], usual: str = "0") -> int:
        asked = Question(
            by=(),
            tolerances=(("amount", usual),),
            own_tolerances=tuple(("amount", condition, number) for condition, number in own),
        )
        return compare(spark, world, asked).groups[0].rows_changed

    assert changed(("shop = 'a'", "1")) == 0
    assert changed(("shop = 'b'", "1")) == 1
    assert changed(("shop = NULL", "1")) == 1
    assert changed(("shop = 'a'", "0.5"), usual="1") == 1, "less than is usual"
    assert changed(("shop = 'a'", "0"), ("amount > 0", "1")) == 0, "the last one counts"
    assert changed(("amount < 6", "1")) == 1, "it is true of the old row alone"


def test_it_is_restricted_to_cells_and_to_keys(spark: SparkSession, world: Compared):
    cells = IntervalSet.of(days(2, 3))
    found = compare(spark, world, Question(cells=cells, where="shop = 'a'"))
    assert [(group.by, group.old_rows, group.rows_changed) for group in found.groups] == [
        (("2024-01-02",), 1, 1), (("2024-01-03",), 1, 0),
    ]  # fmt: skip
    for amount in (5, 6):  # of one row, before and now
        found = compare(spark, world, Question(by=(), where=f"amount = {amount}"))
        assert [group.rows_changed for group in found.groups] == [1]


def test_some_rows_that_differ_are_shown_with_both_values(spark: SparkSession, world: Compared):
    shown = differences(spark, world, Question(), limit=3)
    assert [(row.cell, row.key["shop"], row.change) for row in shown] == [
        ("2024-01-02", "a", "changed"),
        ("2024-01-03", "b", "removed"),
        ("2024-01-03", "c", "added"),
    ]
    assert (shown[0].old, shown[0].new) == ({"amount": 5.0}, {"amount": 6.0})
    assert (shown[1].new, shown[2].old) == ({}, {})
    assert shown[1].old["amount"] == 7


def test_values_of_a_column_that_is_never_shown_are_masked(spark: SparkSession, world: Compared):
    ds, shop, amount = world.model.schema
    columns = (ds, replace(shop, shown=False), replace(amount, shown=False))
    hidden = replace(world, model=replace(world.model, columns=columns))
    changed, removed, _ = differences(spark, hidden, Question(), limit=3)
    assert (changed.key["shop"], changed.old, changed.new) == (
        "***", {"amount": "***"}, {"amount": "***"},
    )  # fmt: skip
    assert removed.old["amount"] == "***"
    assert {row.key["shop"] for row in rows_outside(spark, hidden, "shop = 'a'").sample} == {"***"}
    gone = replace(world, model=replace(world.model, columns=(ds, shop)))
    removed = differences(spark, gone, Question(), limit=1)[0]
    assert removed.old["amount"] == "***", "what hid it may have gone with its declaration"


def test_the_sql_is_the_query_that_was_run(spark: SparkSession, world: Compared):
    question = Question(by=(*BY_CELL, "shop"))
    sql = comparison_sql(world, question)
    found = compare(spark, world, question)
    assert found.sql == sql
    assert f"delta.`{world.old.path}` VERSION AS OF {world.old.delta_version}" in sql
    by_hand = [(row["_cell"], row["shop"], row["old_rows"]) for row in spark.sql(sql).collect()]
    assert by_hand == [(*group.by, group.old_rows) for group in found.groups]


def test_rows_that_a_condition_did_not_choose_must_not_differ(spark: SparkSession, world: Compared):
    outside = rows_outside(spark, world, "shop = 'a'")
    assert outside.differing == 2
    assert {row.key["shop"] for row in outside.sample} == {"b", "c"}
    assert rows_outside(spark, world, "shop = 'a'", IntervalSet.of(days(2, 4))).differing == 0
    # By its old values a row is chosen, and may then become anything.
    assert rows_outside(spark, world, "amount = 5", IntervalSet.of(days(2))).differing == 0
    assert rows_outside(spark, world, "amount = 6", IntervalSet.of(days(2))).differing == 1
    assert rows_outside(spark, world, "CAST(NULL AS BOOLEAN)").differing == 4


def test_null_and_not_a_number_are_values_like_others(spark: SparkSession, tmp_path: Path):
    model = sales(columns=RATED)

    def rated(shop: str, rate: str) -> str:
        return f"(DATE'2024-01-01', '{shop}', 1, {rate})"

    nan, null = "double('NaN')", "CAST(NULL AS DOUBLE)"
    old = [("same", nan), ("none", null), ("gone", "1D"), ("nan", nan), ("tiny", "0.1D")]
    new = [("same", nan), ("none", null), ("gone", null), ("nan", "1D"), ("tiny", "0.1D + 1e-12D")]
    compared = Compared(
        model,
        a_table(spark, tmp_path / "old", model, *(rated(*values) for values in old)),
        a_table(spark, tmp_path / "new", model, *(rated(*values) for values in new)),
    )
    changed = {row.key["shop"] for row in differences(spark, compared, Question())}
    assert changed == {"gone", "nan", "tiny"}
    (total,) = compare(spark, compared, Question(by=())).groups
    assert total.rows_changed == 3
    assert (total.columns["rate"].old_filled, total.columns["rate"].new_filled) == (4, 3)
    assert (total.columns["rate"].old_sum, total.columns["rate"].new_sum) == (None, None)


def test_a_column_of_one_side_only_is_named_and_counted_but_no_change(
    spark: SparkSession, tmp_path: Path, world: Compared
):
    model = sales(columns=NOTED)
    rows = [
        "(DATE'2024-01-01', 'a', 1, 'x', map('k', 1))",
        "(DATE'2024-01-01', 'b', 1, NULL, NULL)",
    ]
    new = a_table(spark, tmp_path / "new", model, *rows, until=1)
    found = compare(spark, Compared(model, world.old, new), Question(cells=IntervalSet.of(days(1))))
    (group,) = found.groups
    assert (found.added, found.removed, group.differs) == (("note", "tags"), (), False)
    assert group.columns["note"].new_filled == 1
    back = compare(
        spark, Compared(sales(), new, world.old), Question(cells=IntervalSet.of(days(1)))
    )
    assert (back.added, back.removed) == ((), ("note", "tags"))
    maps = compare(spark, Compared(model, new, new), Question(by=()))
    assert [(map_group.rows_changed, map_group.old_rows) for map_group in maps.groups] == [(0, 2)]


def test_columns_of_another_type_are_named_also_where_their_values_are_equal(
    spark: SparkSession, tmp_path: Path
):
    nested = sales(columns=(*SALES_COLUMNS, Column("more", "struct<n:int>")))
    wider = (Column("amount", "decimal(20,4)"), Column("more", "struct<n:bigint>"))
    model = sales(columns=(*SALES_COLUMNS[:2], *wider))
    row = "(DATE'2024-01-01', 'a', 5, struct(1))"
    old = a_table(spark, tmp_path / "old", nested, row, until=1)
    new = a_table(spark, tmp_path / "new", model, row, until=1)

    found = compare(spark, Compared(model, old, new), Question(by=()))

    assert [group.rows_changed for group in found.groups] == [0]
    assert found.retyped == (
        ("amount", "decimal(18,2)", "decimal(20,4)"),
        ("more", "struct<n:int>", "struct<n:bigint>"),
    )
    assert compare(spark, Compared(model, new, new), Question(by=())).retyped == ()


@pytest.mark.parametrize("back", [False, True])
def test_a_number_that_the_other_type_holds_only_nearly_has_changed(
    spark: SparkSession,
    tmp_path: Path,
    back: bool,  # noqa: FBT001
):
    sides: list[tuple[Model, Table]] = []
    for dtype, value in (("bigint", "9007199254740993"), ("double", "9007199254740992")):
        model = sales(columns=(*SALES_COLUMNS[:2], Column("amount", dtype)))
        row = f"(DATE'2024-01-01', 'a', {value})"
        sides.append((model, a_table(spark, tmp_path / dtype, model, row, until=1)))
    (_, old), (model, new) = reversed(sides) if back else sides

    (group,) = compare(spark, Compared(model, old, new), Question(by=())).groups

    assert group.rows_changed == 1


def test_maps_inside_of_other_values_are_compared(spark: SparkSession, tmp_path: Path):
    inside = Column("inside", "struct<m:map<string,int>>"), Column("many", "array<map<string,int>>")
    model = sales(columns=(*SALES_COLUMNS[:2], *inside))
    same = "(DATE'2024-01-01', 'a', struct(map('x', 1, 'y', 2)), array(map('x', 1)))"
    again = same.replace("'x', 1, 'y', 2", "'y', 2, 'x', 1")
    nothing = "(DATE'2024-01-01', 'b', NULL, NULL)"
    empty = "(DATE'2024-01-01', 'b', struct(CAST(NULL AS map<string,int>)), array(map('x', 2)))"
    old = a_table(spark, tmp_path / "old", model, same, nothing, until=1)
    new = a_table(spark, tmp_path / "new", model, again, empty, until=1)

    (group,) = compare(spark, Compared(model, old, new), Question(by=())).groups

    assert group.rows_changed == 1
    assert [group.columns[column.name].changed for column in inside] == [1, 1]


def test_a_row_that_moves_to_another_cell_goes_and_comes(spark: SparkSession, tmp_path: Path):
    model, asked = sales(unique_key=["shop"]), Question(by=(), cells=IntervalSet.of(days(1, 2)))
    old, new = (
        a_table(spark, tmp_path / str(number), model, sale(number, "a")) for number in (1, 2)
    )
    both = Compared(model, old, new)

    for found in (compare(spark, both, asked), compare_rows(both, asked).comparison()):
        (group,) = found.groups
        assert (group.keys_added, group.keys_removed, group.rows_changed) == (1, 1, 0)


def test_a_column_that_got_another_case_went_and_came(spark: SparkSession, tmp_path: Path):
    shouted = tuple(Column(column.name.upper(), column.dtype) for column in SALES_COLUMNS[1:])
    renamed = sales(columns=(SALES_COLUMNS[0], *shouted), unique_key=["ds", "SHOP"])
    old = a_table(spark, tmp_path / "old", sales(), sale(1, "a", 5), until=1)
    new = a_table(spark, tmp_path / "new", renamed, sale(1, "a", 7), until=1)
    both = Compared(renamed, old, new)

    (found,) = compare(spark, both, Question(by=(), where="amount > 1", profile=True)).groups

    assert (found.old_rows, found.new_rows, found.keys_added, found.keys_removed) == (1, 1, 0, 0)
    assert (found.columns["amount"].old_sum, found.columns["AMOUNT"].new_sum) == (5, 7)
    assert rows_outside(spark, both, "shop = 'a'").differing == 0


def test_columns_of_any_name_are_compared(spark: SparkSession, tmp_path: Path):
    names = ("_there", "_chosen", "_in_old", "_in_new", "_changed", "old", "new", "key", "changed")
    odd = sales(columns=(*SALES_COLUMNS[:2], *(Column(name, "int") for name in names)))
    old, new = (
        a_table(
            spark, tmp_path / str(value), odd,
            f"(DATE'2024-01-01', 'a', {', '.join([str(value)] * len(names))})",
            until=1,
        )
        for value in (1, 2)
    )  # fmt: skip

    (found,) = differences(spark, Compared(odd, old, new), Question(where="_there = 1"))

    assert (found.old, found.new) == (dict.fromkeys(names, 1), dict.fromkeys(names, 2))


def test_nested_fields_of_any_name_are_written_and_compared(spark: SparkSession, tmp_path: Path):
    nested = Column("who", "struct<`user-id`: STRING, `1st`: array<struct<`a.b`: int>>, Case: int>")
    old_model = sales(columns=(*SALES_COLUMNS, nested))
    wider = sales(columns=(*SALES_COLUMNS, nested, Column("too", "struct<`x-y`:int>")))
    old = a_table(
        spark, tmp_path / "old", old_model,
        f"{sale(1, 'a')[:-1]}, struct('u', array(struct(1)), 1))", until=1,
    )  # fmt: skip
    row = f"{sale(1, 'a')[:-1]}, struct('v', array(struct(1)), 1), struct(2))"
    new = a_table(spark, tmp_path / "new", wider, row, until=1)
    # It is written again in the spelling of the table.
    given = frame(spark, wider.schema, row).withColumnRenamed("who", "w")
    shouted = "struct<`USER-ID`:string,`1st`:array<struct<`a.b`:int>>,CASE:int>"
    given = given.selectExpr("ds", "shop", "amount", f"CAST(w AS {shouted}) AS who", "too")
    commit_cells(contract(given, wider), wider, days(1), ticket(new.path, 2))

    (found,) = differences(spark, Compared(wider, old, table_now(new.path)), Question())

    assert found.old == {"who": {"user-id": "u", "1st": [{"a.b": 1}], "Case": 1}}
    assert found.new == {"who": {"user-id": "v", "1st": [{"a.b": 1}], "Case": 1}}


def test_against_nothing_every_row_is_added(spark: SparkSession, world: Compared):
    empty = replace(world, old=Table("nowhere", ABSENT))
    found = compare(spark, empty, Question(by=()))
    (total,) = found.groups
    assert (total.old_rows, total.keys_added, total.new_rows, found.added) == (0, 7, 7, ())
    (total,) = compare(spark, Compared(sales(), world.new, empty.old), Question(by=())).groups
    assert (total.keys_removed, total.new_rows) == (7, 0)


def test_a_layered_table_is_compared_as_it_reads(spark: SparkSession, world: Compared):
    overlay = replace(world.new, cells=IntervalSet.of(days(2)), under=(world.old,))
    found = compare(spark, replace(world, new=overlay), Question())
    assert [group.by for group in found.groups if group.differs] == [("2024-01-02",)]


def test_the_counts_are_those_of_a_naive_comparison(spark: SparkSession, tmp_path: Path):
    def rows(seed: int) -> dict[tuple[int, str], int]:
        numbers = range(40)
        return {
            (n % 4 + 1, f"s{n % 10}"): (n * seed) % 7 for n in numbers if (n * n + seed) % 5
        }  # fmt: skip

    old, new = rows(1), rows(4)

    def landed(name: str, found: dict[tuple[int, str], int]) -> Table:
        listed: Sequence[str] = [sale(*key, value) for key, value in found.items()]
        return a_table(spark, tmp_path / name, sales(), *listed)

    compared = Compared(sales(), landed("old", old), landed("new", new))
    expected: Counter[tuple[str, int]] = Counter()
    for key in old.keys() | new.keys():
        what = "+" if key not in old else "-" if key not in new else "~"
        if what != "~" or old[key] != new[key]:
            expected[what, key[0]] += 1
    found: Counter[tuple[str, int]] = Counter()
    for cell, counts in compare(spark, compared, Question()).cells(sales()).items():
        found["+", cell.start.day] = counts.keys_added
        found["-", cell.start.day] = counts.keys_removed
        found["~", cell.start.day] = counts.rows_changed
    assert +found == expected
    assert {what for what, _ in expected} == {"+", "-", "~"}


WEEKLY = sales(cadence=Weekly(start="2024-01-01"))
WHOLE = sales(kind=Full(), cadence=Whole())


@pytest.mark.parametrize(
    ("old_model", "new_model", "cells"),
    [
        (sales(), WEEKLY, ["2024-01-01"]),
        (WEEKLY, sales(), ["2024-01-01", "2024-01-02", "2024-01-03"]),
        (sales(), WHOLE, ["1970-01-01"]),
        (WHOLE, sales(), ["2024-01-01", "2024-01-02", "2024-01-03"]),
    ],
    ids=["days to a week", "a week to days", "days to one cell", "one cell to days"],
)
def test_rows_of_other_cells_are_compared_in_the_new_cell_that_they_lie_in(
    spark: SparkSession, tmp_path: Path, old_model: Model, new_model: Model, cells: list[str]
):
    rows = (sale(1, "a"), sale(2, "a"), sale(2, "b"))
    old = a_table(spark, tmp_path / "old", old_model, *rows, sale(3, "a", 5))
    new = a_table(spark, tmp_path / "new", new_model, *rows, sale(3, "a", 6))
    recut = Compared(new_model, old, new, old_model)

    found = compare(spark, recut, Question(cells=new_model.cadence.snap_out(day(1, 3))))

    assert [group.by[0] for group in found.groups] == cells
    assert [(g.keys_added, g.keys_removed, g.rows_changed) for g in found.groups if g.differs] == [
        (0, 0, 1)
    ]
    assert [row.key["ds"] for row in differences(spark, recut, Question())] == ["2024-01-03"]
    if len(cells) > 1:
        first = Question(cells=IntervalSet.of(days(1, 2)))
        assert sum(group.old_rows for group in compare(spark, recut, first).groups) == 3


TIMES = (Column("at", "timestamp"), Column("ds", "date"), *SALES_COLUMNS[1:])


@pytest.mark.parametrize(
    ("old_time", "old_zone", "new_time"),
    [("at", "UTC", "at"), ("at", "Europe/Berlin", "ds")],
    ids=["another zone", "another time column"],
)
def test_a_row_is_compared_in_the_cell_that_the_new_time_gives_it(
    spark: SparkSession, tmp_path: Path, old_time: str, old_zone: str, new_time: str
):
    """It lies in the second day of Berlin, in the first one of UTC, and names the third one as its date."""
    row = "(TIMESTAMP'2024-01-01 23:30:00Z', DATE'2024-01-03', 'a', 1)"
    models = [
        sales(
            columns=TIMES,
            kind=IncrementalByTimeRange(time_column=time),
            unique_key=["at"],
            cadence=Daily(start="2024-01-01", tz=zone),
        )
        for time, zone in (
            (old_time, old_zone),
            (new_time, "Europe/Berlin" if new_time == "at" else "UTC"),
        )
    ]
    old, new = (
        a_table(spark, tmp_path / name, model, row)
        for name, model in zip(("old", "new"), models, strict=True)
    )

    found = compare(spark, Compared(models[1], old, new, models[0]), Question())

    assert [(group.by, group.differs) for group in found.groups] == [
        (("2024-01-02" if new_time == "at" else "2024-01-03",), False)
    ]


def test_rows_of_which_nothing_tells_the_new_cell_are_refused(spark: SparkSession, tmp_path: Path):
    _, *timeless = SALES_COLUMNS
    whole = replace(WHOLE, columns=tuple(timeless), unique_key=("shop",))
    old = a_table(spark, tmp_path / "old", whole, "('a', 1)")
    new = a_table(spark, tmp_path / "new", sales(), sale(1, "a"))

    with pytest.raises(RequestError, match=r"no column of the published commerce\.sales, whose"):
        compare(spark, Compared(sales(), old, new, whole), Question())
