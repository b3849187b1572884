from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals import Whole
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import (
    complete,
    not_null,
    reconciles,
    references,
    row_rule,
    sql_audit,
    unique,
)
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.column import Column
from backfill_assets.models.kind import Full
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.warehouse.files.tables import Table, table_now
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.conform import contract
from backfill_assets.warehouse.rows.inputs import Input
from backfill_assets.warehouse.rows.moves import clashes_with, rows_elsewhere
from backfill_assets.warehouse.rows.profile import Subject, profile
from backfill_assets.warehouse.rows.samples import failing_rows
from backfill_assets_tests.warehouse.shop import (
    DAILY,
    SALES_COLUMNS,
    batch,
    commit_cells,
    days,
    frame,
    sale,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets.models.content import CellProfile
    from backfill_assets.models.model import Model

pytestmark = pytest.mark.spark

NOWHERE = Table("nowhere", ABSENT)


def profiled(spark: SparkSession, model: Model, *rows: str) -> tuple[CellProfile, ...]:
    computed = contract(frame(spark, model.schema, *rows), model)
    return profile(computed, Subject(model, days(1, 2), NOWHERE))


def failing(profiles: tuple[CellProfile, ...], audit: str) -> list[int]:
    return [cell_profile.failing[audit] for cell_profile in profiles]


def test_every_cell_of_the_batch_has_a_profile_even_without_rows(spark: SparkSession):
    first, second = profiled(spark, sales(), sale(1, "a"), sale(1, "b"))
    assert (first.cell, first.content.rows) == (days(1)[0], 2)
    assert (second.cell, second.content.rows, second.content.key) == (days(2)[0], 0, 0)
    assert second.failing == dict.fromkeys(first.failing, 0)


def test_rows_outside_the_batch_are_an_error_with_an_example(spark: SparkSession):
    words = r"gave 2 rows outside the batch's cells \(cells 2024-01-05 to 2024-01-07\)"
    with pytest.raises(DeclarationError, match=words) as refused:
        profiled(spark, sales(), sale(1, "a"), sale(5, "b"), sale(7, "b"))
    assert '"ds":"2024-01-05"' in str(refused.value)


def test_a_row_without_its_time_is_an_error(spark: SparkSession):
    with pytest.raises(DeclarationError, match="'ds' is NULL, for example"):
        profiled(spark, sales(), sale(1, "a"), "(NULL, 'b', 1)")


def test_failing_rows_are_counted_per_cell(spark: SparkSession):
    columns = (
        *SALES_COLUMNS[:2],
        Column("amount", "decimal(18,2)", nullable=False, checks=(("greater_than", "amount > 0"),)),
    )
    model = sales(columns=columns, audits=[row_rule("short", "length(shop) < 2")])
    found = profiled(
        spark, model, sale(1, "a", -1), sale(1, "bb", 0), sale(2, "c"), sale(2, "a"), sale(2, "a"),
        "(DATE'2024-01-02', NULL, NULL)",
    )  # fmt: skip
    assert failing(found, "greater_than_amount") == [2, 0]
    assert failing(found, "short") == [1, 0]
    assert failing(found, "not_null_amount") == [0, 1]
    assert failing(found, "not_null_shop") == [0, 1]
    assert failing(found, "unique_grain") == [0, 1]


def test_the_key_and_the_columns_declare_audits_once_by_name():
    columns = (*SALES_COLUMNS[:2], Column("amount", "decimal(18,2)", unique=True))
    model = sales(columns=columns, audits=[not_null("shop", warn=True), unique("amount")])
    assert [audit.name for audit in audits_of(model)] == [
        "unique_grain",
        "not_null_shop",
        "unique_amount",
        "not_null_ds",
    ]


def test_uniqueness_is_checked_against_the_tables_other_cells(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "sales"), sales(unique_key=["shop"])
    rows = batch(spark, model, path, days(1, 2), sale(1, "a"), sale(2, "b"))
    commit_cells(rows, model, days(1, 2), ticket(path, 1))
    subject = Subject(model, days(2), table_now(path))
    rows = batch(spark, model, path, days(2), sale(2, "a"), sale(2, "b"), sale(2, "c"))
    found = profile(rows, subject)
    assert failing(found, "unique_grain") == [1]
    (sample,) = failing_rows(rows, audits_of(model)[0], subject)
    assert '"shop":"a"' in sample


def test_a_row_that_clashes_within_the_batch_and_beyond_it_is_counted_once(
    spark: SparkSession, tmp_path: Path
):
    path, model = str(tmp_path / "sales"), sales(unique_key=["shop"])
    before = batch(spark, model, path, days(1), sale(1, "a"), sale(1, "b"))
    commit_cells(before, model, days(1), ticket(path, 1))
    cells = days(2, 3)
    given = sale(2, "a"), sale(3, "a"), sale(3, "a"), sale(3, "b"), sale(3, "c"), sale(3, "c")
    rows = batch(spark, model, path, cells, *given)

    found = profile(rows, Subject(model, cells, table_now(path)))

    assert failing(found, "unique_grain") == [1, 4]


def landed(spark: SparkSession, path: str, *rows: str) -> Input:
    """A source of sales, at its head."""
    frame(spark, SALES_COLUMNS, *rows).write.format("delta").save(path)
    source = Source(
        name="commerce.raw_sales",
        path=path,
        cadence=DAILY,
        columns=SALES_COLUMNS,
        times=TimeColumns(event="ds"),
    )
    return Input(source, table_now(path), IntervalSet.of([WHOLE_CELL]))


def test_references_and_sums_are_compared_with_the_upstream(spark: SparkSession, tmp_path: Path):
    raw = landed(
        spark,
        str(tmp_path / "raw"),
        sale(1, "a", 1.5),
        sale(1, "a", 2),
        sale(2, "b", 4),
        sale(9, "z"),
    )
    model = sales(
        audits=[
            references("shop", "commerce.raw_sales", "shop"),
            reconciles("amount", "commerce.raw_sales"),
            reconciles("*", "commerce.raw_sales", "*"),
        ]
    )
    subject = Subject(model, days(1, 2), NOWHERE, {raw.name: raw})
    rows = contract(
        frame(spark, model.schema, sale(1, "a", 3.5), sale(2, "b", 1), sale(2, "x", 1)), model
    )
    found = profile(rows, subject)
    assert failing(found, "references_shop") == [0, 1]
    assert [cell_profile.sums["reconciles_amount"] for cell_profile in found] == [
        ("3.50", "3.50"),
        ("2.00", "4.00"),
    ]
    assert [cell_profile.sums["reconciles_rows"] for cell_profile in found] == [
        ("1", "2"),
        ("2", "1"),
    ]
    (sample,) = failing_rows(rows, model.audits[0], subject)
    assert sample == '{"ds":"2024-01-02","shop":"x","amount":"***"}'


def test_a_table_that_is_one_cell_reconciles_with_the_cells_that_it_reads(
    spark: SparkSession, tmp_path: Path
):
    raw = landed(spark, str(tmp_path / "raw"), sale(1, "a", 10), sale(2, "a", 20), sale(3, "a", 5))
    read = replace(raw, cells=IntervalSet.of(days(1, 2)))  # the third day is not over
    audit = reconciles("amount", raw.name)
    model = sales(kind=Full(), cadence=Whole(), audits=[audit])
    rows = contract(frame(spark, model.schema, sale(1, "a", 10), sale(2, "a", 20)), model)

    (found,) = profile(rows, Subject(model, (WHOLE_CELL,), NOWHERE, {raw.name: read}))

    assert found.sums[audit.name] == ("30.00", "30.00")


def test_a_value_that_equals_several_of_another_type_is_one_row(
    spark: SparkSession, tmp_path: Path
):
    raw = landed(spark, str(tmp_path / "raw"), sale(1, "1"), sale(1, "01"))
    audit = references("size", raw.name, "shop")
    model = sales(columns=(*SALES_COLUMNS[:2], Column("size", "int")), audits=[audit])
    rows = contract(frame(spark, model.schema, sale(1, "a", 1), sale(1, "b", 2)), model)

    (found,) = profile(rows, Subject(model, days(1), NOWHERE, {raw.name: raw}))

    assert found.content.rows == 2
    assert found.failing[audit.name] == 1


def test_any_name_of_a_column_is_the_authors(spark: SparkSession, tmp_path: Path):
    raw = landed(spark, str(tmp_path / "raw"), sale(1, "1"), sale(2, "2"))
    for name in ("_key", "_rows", "_known", "_same", "cell", "earlier", "part", "answers"):
        told = Column(name, "string")
        audits = (
            unique(name),
            references(name, raw.name, "shop"),
            complete(name),
            row_rule("odd", f"{name} <> '3'"),
        )
        model = sales(columns=(*SALES_COLUMNS[:2], told), audits=audits)
        subject = Subject(model, days(1, 2), NOWHERE, {raw.name: raw})
        before, after = (
            contract(frame(spark, model.schema, sale(1, "a", first), sale(2, "a", 3)), model)
            for first in (1, 3)
        )

        found, other = profile(before, subject), profile(after, subject)

        assert found[0].content.columns[name] != other[0].content.columns[name]
        assert [failing(other, audit.name) for audit in audits] == [
            [1, 0], [1, 1], [0, 0], [1, 1],
        ]  # fmt: skip
        assert [len(failing_rows(after, audit, subject)) for audit in audits] == [2, 2, 0, 2]


def test_keys_in_other_cells_are_masked_as_samples_are(spark: SparkSession, tmp_path: Path):
    path, model = str(tmp_path / "sales"), sales()
    rows = batch(spark, model, path, days(1), sale(1, "a", 7))
    commit_cells(rows, model, days(1), ticket(path, 1))
    others = rows_elsewhere(spark, model, days(2), table_now(path), ["shop", "amount"])
    assert others is not None
    later = batch(spark, model, path, days(2), sale(2, "a", 7))

    (clash,) = clashes_with(later, others, model, ["shop", "amount"], path)

    assert clash.key == '{"shop":"a","amount":"***"}'


def test_samples_show_rows_that_break_a_rule_or_a_key(spark: SparkSession):
    model = sales(audits=[row_rule("small", "amount < 5")])
    rows = contract(
        frame(spark, model.schema, sale(1, "a", 9), sale(1, "b"), sale(1, "b", 2)), model
    )
    subject = Subject(model, days(1), NOWHERE)
    assert failing_rows(rows, model.audits[0], subject) == (
        '{"ds":"2024-01-01","shop":"a","amount":"***"}',
    )
    assert len(failing_rows(rows, audits_of(model)[0], subject)) == 2


def sampled(spark: SparkSession, columns: tuple[Column, ...]) -> list[str]:
    audit = sql_audit("wrong", "SELECT *, 'of ' || shop AS told FROM {rows} WHERE shop <> 'ok'")
    model = sales(columns=columns, audits=[audit])
    rows = contract(
        frame(spark, columns, sale(1, "a", 9), "(DATE'2024-01-01', 'b', NULL)", sale(1, "ok")),
        model,
    )
    return sorted(failing_rows(rows, audit, Subject(model, days(1), NOWHERE)))


def test_samples_mask_all_but_key_time_and_what_is_declared_shown(spark: SparkSession):
    ds, shop, amount = SALES_COLUMNS
    assert sampled(spark, SALES_COLUMNS) == [
        '{"ds":"2024-01-01","shop":"a","amount":"***","told":"***"}',
        '{"ds":"2024-01-01","shop":"b","amount":null,"told":"***"}',
    ]
    assert sampled(spark, (ds, shop, replace(amount, shown=True)))[0] == (
        '{"ds":"2024-01-01","shop":"a","amount":9.00,"told":"***"}'
    )
    assert sampled(spark, (ds, replace(shop, shown=False), amount))[0] == (
        '{"ds":"2024-01-01","shop":"***","amount":"***","told":"***"}'
    )


def test_an_error_about_rows_masks_their_values(spark: SparkSession):
    with pytest.raises(DeclarationError, match=r'"amount":"\*\*\*"'):
        profiled(spark, sales(), sale(5, "b"))
