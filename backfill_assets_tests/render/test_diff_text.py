from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.planning.change.compared import Group, Measure
from backfill_assets.render.diff_text import (
    counts_text,
    difference_text,
    differs,
    group_row,
    null_rates,
    retyped_texts,
    total_row,
    totals,
)
from backfill_assets.warehouse.compare.compare import Comparison, Difference
from backfill_assets_tests.builders import a_model

SAME = Group(
    ("2024-01-01",),
    old_rows=3,
    new_rows=3,
    keys_added=0,
    keys_removed=0,
    rows_changed=0,
    columns={"cost": Measure(0, 3, 3, Decimal("5.00"), Decimal("5.00"))},
)
CHANGED = Group(
    ("2024-01-02",),
    old_rows=1000,
    new_rows=1001,
    keys_added=2,
    keys_removed=1,
    rows_changed=4,
    columns={
        "cost": Measure(4, 1000, 1001, Decimal("10.00"), Decimal("9.50")),
        "clicks": Measure(0, 0, 900, None, Decimal(70)),
    },
)


def a_comparison(*groups: Group, **given: tuple[str, ...]) -> Comparison:
    return Comparison(
        by=given.get("by", (CELL_COLUMN,)),
        groups=groups,
        added=given.get("added", ()),
        removed=given.get("removed", ()),
        sql="",
    )


def test_a_day_is_a_line_with_what_differs_in_it():
    assert group_row(a_model("toy.sales"), (CELL_COLUMN,), CHANGED) == (
        *("2024-01-02", "1,000", "1,001", "2", "1", "4"),
        "cost 4",
    )


def test_the_columns_that_differ_most_come_first_and_the_rest_is_counted():
    many = {f"c{at}": Measure(at, 1, 1, None, None) for at in range(7)}
    row = group_row(a_model("toy.sales"), ("shop",), replace(CHANGED, by=(None,), columns=many))

    assert row[0] == "NULL"
    assert row[-1] == "c6 6, c5 5, c4 4, c3 3, and 2 more"


def test_totals_add_up_every_group():
    cost, clicks = totals(a_comparison(SAME, CHANGED, added=("clicks",)))

    assert total_row(cost) == ("cost", "4", "1,003", "1,004", "15.00", "14.50", "-3.33%")
    assert total_row(clicks) == ("clicks", "0", "0", "900", "", "70", "new column")
    assert cost.differs
    assert clicks.differs


def test_a_total_is_exact_and_none_where_a_group_has_none():
    wide = Measure(1, 1, 1, Decimal(10**29), Decimal(10**29 + 1))
    one = Measure(0, 1, 1, Decimal("0.5"), None)
    (cost,) = totals(
        a_comparison(replace(SAME, columns={"cost": wide}), replace(SAME, columns={"cost": one}))
    )

    assert (cost.old_sum, cost.new_sum) == (Decimal(f"{10**29}.5"), None)
    assert total_row(cost)[4:] == ("100,000,000,000,000,000,000,000,000,000.5", "", "")


def test_the_part_of_rows_without_a_value_is_told_where_it_changes():
    emptied = replace(SAME, columns={"cost": Measure(1, 3, 1, Decimal(5), Decimal(2))})
    assert null_rates(a_comparison(emptied)) == (
        "NULL in cost: 0.00% of rows before, 66.67% after",
    )
    assert null_rates(a_comparison(SAME, CHANGED, added=("clicks",))) == ()
    assert null_rates(a_comparison(replace(emptied, old_rows=0))) == ()


def test_what_was_nothing_has_no_share():
    (cost,) = totals(
        a_comparison(replace(SAME, columns={"cost": Measure(1, 1, 1, Decimal(0), Decimal(2))}))
    )

    assert total_row(cost)[-1] == "from 0"


def test_a_column_more_is_a_difference_even_where_no_row_differs():
    assert not differs(a_comparison(SAME))
    assert differs(a_comparison(SAME, added=("clicks",)))
    assert differs(a_comparison(SAME, CHANGED))


def test_a_column_of_another_type_is_a_difference_even_where_its_values_are_equal():
    retyped = replace(a_comparison(SAME), retyped=(("cost", "int", "decimal(18,2)"),))
    (cost,) = totals(retyped)

    assert differs(retyped)
    assert cost.differs
    assert total_row(cost)[-1] == "int -> decimal(18,2)"
    assert counts_text(retyped).endswith("0 rows changed, 1 column of another type")

    cost, _ = totals(replace(retyped, groups=(CHANGED,)))
    assert total_row(cost)[-1] == "-5.00%, int -> decimal(18,2)"
    emptied = replace(SAME, columns={"cost": Measure(0, 3, 0, None, None)})
    assert null_rates(replace(retyped, groups=(emptied,))) != ()


def test_a_column_of_the_key_that_has_another_type_is_named():
    retyped = replace(
        a_comparison(SAME), retyped=(("id", "int", "string"), ("cost", "int", "bigint"))
    )

    assert retyped_texts(retyped) == ("id: int -> string",)


def test_all_of_it_in_one_line():
    assert counts_text(a_comparison(SAME, CHANGED, added=("clicks",), removed=("views",))) == (
        "1,003 rows before, 1,004 after; 2 keys added, 1 removed, 4 rows changed, 1 new column, "
        "1 column removed"
    )
    one = replace(SAME, old_rows=1, new_rows=1, keys_added=1, keys_removed=0, rows_changed=1)
    assert counts_text(a_comparison(one)) == (
        "1 row before, 1 after; 1 key added, 0 removed, 1 row changed"
    )


def test_a_row_that_differs_shows_old_and_new():
    row = Difference("2024-01-02", {"id": 7}, "changed", {"cost": 1.5}, {"cost": 2.5})

    assert difference_text(row) == "changed id=7: cost 1.5 -> 2.5"
    gone = replace(row, change="removed", new={})
    assert difference_text(gone) == "removed id=7: cost=1.5"


def test_values_that_can_not_be_seen_are_told_apart():
    before = {"a": None, "b": "", "c": "NULL", "d": "two\nlines", "e": " x", "f": [1.5, None]}
    after = {"a": "", "b": None, "c": None, "d": "\x1b[31m", "e": "x", "f": {"ä": 1}}
    row = Difference("2024-01-02", {"id": ""}, "changed", before, after)

    assert difference_text(row) == (
        'changed id="": a NULL -> "", b "" -> NULL, c "NULL" -> NULL, d "two\\nlines" -> "\\u001b[31m", '
        'e " x" -> x, f [1.5, null] -> {"ä": 1}'
    )
    by_shop = replace(CHANGED, by=("",))
    assert group_row(a_model("toy.sales"), ("shop",), by_shop)[0] == '""'


def test_a_long_value_is_shown_from_its_first_difference_on():
    before, after = "a" * 99_999 + "b", "a" * 99_999 + "c" * 100
    row = Difference("2024-01-02", {"id": 7}, "changed", {"text": before}, {"text": after})

    alike = "a" * 10
    assert difference_text(row) == (
        f"changed id=7: text ...{alike}b (100,000 characters) -> "
        f"...{alike}{'c' * 70}... (100,099 characters)"
    )
    gone = replace(row, change="removed", new={})
    assert difference_text(gone) == f"removed id=7: text={'a' * 80}... (100,000 characters)"
