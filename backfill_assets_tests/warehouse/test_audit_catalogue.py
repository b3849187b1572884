"""Each audit of the catalogue, measured by Spark and judged: it passes on good rows and fails on bad ones."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.batch.judge import judge
from backfill_assets.errors import DeclarationError
from backfill_assets.intervals import Daily, Whole
from backfill_assets.intervals.instants import InstantFormatError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import (
    complete,
    distinct_within,
    fresh,
    known_rows,
    metric_within,
    percentile_within,
    python_audit,
    sql_audit,
    total_within,
    trend_within,
)
from backfill_assets.models.codec import dumps
from backfill_assets.models.column import Column
from backfill_assets.models.content import Content
from backfill_assets.models.kind import Full, IncrementalByTimeRange
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.warehouse.files.tables import Table, table_now
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.conform import contract
from backfill_assets.warehouse.rows.profile import Subject, empty_profiles, profile
from backfill_assets.warehouse.rows.samples import failing_rows
from backfill_assets_tests.warehouse import row_audits
from backfill_assets_tests.warehouse.row_audits import long_names, no_frame, totals_below_zero
from backfill_assets_tests.warehouse.shop import (
    DAILY,
    SALES_COLUMNS,
    batch,
    commit_cells,
    day,
    days,
    frame,
    sale,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.audit_result import AuditResult

pytestmark = pytest.mark.spark

NOWHERE = Table("nowhere", ABSENT)
GOOD = (sale(1, "a", 10), sale(1, "b", 20), sale(2, "a", 11), sale(2, "b", 21))


def judged(
    spark: SparkSession, audit: Audit, *rows: str, published: Table | None = None, cells: tuple[Interval, ...] = days(1, 2),
    before: tuple[int, ...] = (),
) -> AuditResult:  # fmt: skip
    """Measure and judge the sales of some days, of which some were published before."""
    model = sales(audits=[audit])
    computed = contract(frame(spark, model.schema, *rows), model)
    found = profile(computed, Subject(model, cells, NOWHERE, published=published))
    previous = {cell: Content(1, 1, {}) for cell in days(*before)}
    (result,) = judge([audit], found, previous, DAILY)
    return result


@pytest.fixture
def published(spark: SparkSession, tmp_path: Path) -> Table:
    """Ten days of two shops: a has 10 and b has 20, and a little more each day."""
    path, model, cells = str(tmp_path / "sales"), sales(), days(*range(1, 11))
    rows = [
        row for number in range(1, 11) for row in (sale(number, "a", 10 + number / 10), sale(number, "b", 20))
    ]  # fmt: skip
    commit_cells(batch(spark, model, path, cells, *rows), model, cells, ticket(path, 1))
    return table_now(path)


CASES: list[tuple[Audit, tuple[str, ...], str]] = [
    (
        complete("shop", entities=["a", "b"]),
        (sale(1, "a"), sale(1, "b"), sale(2, "a")),
        "1 value of shop missing where expected, 1 of them in 2024-01-02",
    ),
    (
        total_within("amount", 25, 35),
        (sale(1, "a", 30), sale(2, "a", -30)),
        "sum(amount) = -30 in 2024-01-02, outside [25, 35]",
    ),
    (
        distinct_within("shop", 2, None),
        (sale(1, "a"), sale(1, "b"), sale(2, "a")),
        "distinct values of shop = 1 in 2024-01-02, outside [2, inf]",
    ),
    (
        percentile_within("amount", 0.5, 10, 20),
        (sale(1, "a", 15), sale(2, "a", 40)),
        "p50 of amount = 40 in 2024-01-02, outside [10, 20]",
    ),
    (
        known_rows([({"ds": date(2024, 1, 2), "shop": "b"}, {"amount": 21})], time_column="ds"),
        (sale(2, "b", 22),),
        "1 known row missing or with different values, 1 of them in 2024-01-02",
    ),
    (
        sql_audit("no_long_name", "SELECT * FROM {rows} WHERE shop RLIKE '^[a-z]{3}$'"),
        (sale(1, "a"), sale(2, "abc")),
        "1 of 2 rows fail the query SELECT * FROM {rows} WHERE shop RLIKE '^[a-z]{3}$'",
    ),
    (
        python_audit("short_names", long_names),
        (sale(1, "a"), sale(2, "abc")),
        "1 of 2 rows fail the function long_names",
    ),
]


@pytest.mark.parametrize(
    ("audit", "bad", "found"), CASES, ids=lambda case: getattr(case, "name", None)
)
def test_an_audit_of_the_rows_alone(
    spark: SparkSession, audit: Audit, bad: tuple[str, ...], found: str
):
    assert judged(spark, audit, *GOOD).passed

    result = judged(spark, audit, *bad)

    assert result.blocks
    assert result.found == found
    assert result.cells == ("2024-01-02",)


def test_entities_of_the_last_published_cells_are_expected(spark: SparkSession, published: Table):
    audit = complete("shop", seen=3)
    new = days(11, 12)

    full = [sale(number, shop) for number in (11, 12) for shop in ("a", "b")]
    assert judged(spark, audit, *full, published=published, cells=new).passed
    lacking = judged(spark, audit, *full[:3], published=published, cells=new)
    assert lacking.cells == ("2024-01-12",)
    within = judged(
        spark, audit, *full[:3], cells=new
    )  # the batch's own earlier cell expects it too
    assert within.cells == ("2024-01-12",)
    assert judged(spark, audit, full[0], cells=days(11)).passed  # no cell before, nothing expected


def test_a_sum_is_held_against_what_the_same_cell_publishes(spark: SparkSession, published: Table):
    audit = metric_within("amount", 0.01)

    same = (sale(1, "a", 10.2), sale(1, "b", 20), sale(2, "a", 10.2), sale(2, "b", 20))
    assert judged(spark, audit, *same, published=published, before=(1, 2)).passed
    doubled = (*same[:2], sale(2, "a", 20.4), sale(2, "b", 40))
    result = judged(spark, audit, *doubled, published=published, before=(1, 2))
    assert result.found == "sum(amount) in 2024-01-02 = 60.4 against 30.2 published (+100.00%)"
    assert result.allowed == "1.000% per cell"
    assert result.cells == ("2024-01-02",)


def test_a_day_that_loses_all_its_rows_has_another_sum(spark: SparkSession, published: Table):
    result = judged(
        spark,
        metric_within("*", 0.5),
        sale(1, "a"),
        sale(1, "b"),
        published=published,
        before=(1, 2),
    )

    assert result.found == "number of rows in 2024-01-02 = 0 against 2 published (-100.00%)"


def test_sums_may_be_compared_over_all_cells_together(spark: SparkSession, published: Table):
    audit = metric_within("amount", absolute=0.5, together=True)
    moved = (sale(1, "a", 20.1), sale(1, "b", 20), sale(2, "a", 0.2), sale(2, "b", 20))

    assert judged(spark, audit, *moved, published=published, before=(1, 2)).passed
    assert not judged(
        spark, metric_within("amount", absolute=0.5), *moved, published=published, before=(1, 2)
    ).passed


def test_cells_that_were_never_published_are_not_compared(spark: SparkSession, published: Table):
    result = judged(spark, metric_within("amount"), *GOOD, published=published)

    assert result.passed
    assert result.found == "no cell with such a number was published before"


def test_a_cliff_or_spike_between_its_neighbours_is_found(spark: SparkSession, published: Table):
    audit = trend_within("amount", neighbours=4)
    steady = (sale(5, "a", 10.5), sale(5, "b", 20))

    assert judged(spark, audit, *steady, published=published, cells=days(5)).passed
    spike = judged(spark, audit, sale(5, "a", 90), published=published, cells=days(5))
    assert spike.blocks
    assert spike.found.startswith("sum(amount) = 90 in 2024-01-05, outside [")
    gone = judged(spark, audit, published=published, cells=days(5))
    assert gone.found.startswith("sum(amount) = 0 in 2024-01-05, outside [")


def test_neighbours_lie_around_each_stretch_of_a_batch(spark: SparkSession, published: Table):
    spike = judged(
        spark, trend_within("amount"), sale(1, "a", 30), sale(10, "a", 300),
        published=published, cells=days(1, 10),
    )  # fmt: skip

    assert spike.cells == ("2024-01-10",)
    assert "sum(amount) = 300 in 2024-01-10" in spike.found


def test_a_day_that_this_batch_empties_is_no_neighbour(spark: SparkSession, published: Table):
    audit = trend_within("amount", neighbours=2)
    model, cells = sales(audits=[audit]), days(3, 4, 5, 6, 7)
    rows = contract(frame(spark, model.schema, sale(5, "a", 30)), model)

    found = profile(rows, Subject(model, cells, NOWHERE, published=published))

    around = found[2].numbers[audit.name].around
    assert [*map(float, around)] == [30.1, 30.2, 30.8, 30.9]  # of days 1, 2, 8 and 9


def test_without_enough_neighbours_there_is_no_band(spark: SparkSession):
    assert judged(spark, trend_within("amount"), sale(1, "a", 1), sale(2, "a", 900)).passed


AT = Column("at", "timestamp")


def seen(number: int, shop: str, hour: int | None) -> str:
    at = "NULL" if hour is None else f"TIMESTAMP'2024-01-{number:02d} {hour:02d}:30:00+00:00'"
    return f"(DATE'2024-01-{number:02d}', '{shop}', 1, {at})"


def test_a_day_that_stops_at_noon_is_not_fresh(spark: SparkSession):
    audit = fresh("at", "6h")
    model = sales(columns=[*SALES_COLUMNS, AT], audits=[audit])
    rows = [
        seen(1, "a", 3),
        seen(1, "b", 23),
        seen(2, "a", 11),
        seen(2, "b", None),
        seen(3, "a", None),
    ]

    computed = contract(frame(spark, model.schema, *rows), model)
    found = profile(computed, Subject(model, days(1, 2, 3, 4), NOWHERE))
    (result,) = judge([audit], found, {}, DAILY)

    assert result.cells == ("2024-01-02", "2024-01-03", "2024-01-04")
    assert result.found == (
        "newest value of at 12h 30m before the end of 2024-01-02, and none in 2 of 4 cells, such as 2024-01-03"
    )


def test_freshness_needs_an_instant_and_a_cell_that_ends():
    with pytest.raises(DeclarationError, match="audit 'fresh_ds' on the type date"):
        sales(audits=[fresh("ds", "6h")])
    with pytest.raises(DeclarationError, match="of a table without cells"):
        sales(
            columns=[*SALES_COLUMNS, AT], audits=[fresh("at", "6h")], kind=Full(), cadence=Whole()
        )
    with pytest.raises(DeclarationError, match="names 'at' as its column of audit"):
        sales(audits=[fresh("at", "6h")])


def test_a_known_row_lies_in_the_cell_that_local_clocks_show(spark: SparkSession):
    late = datetime(2024, 1, 1, 23, 30)  # noqa: DTZ001 - as clocks in Berlin show it
    audit = known_rows([({"at": late, "shop": "a"}, {"amount": 5})], time_column="at")
    model = sales(
        columns=(Column("at", "timestamp_ntz"), *SALES_COLUMNS[1:]),
        kind=IncrementalByTimeRange(time_column="at"),
        unique_key=["at", "shop"],
        cadence=Daily(start="2024-01-01", tz="Europe/Berlin"),
        audits=[audit],
    )
    cells = tuple(model.cadence.cells(IntervalSet.of([day(1, 2)])))[:2]
    rows = frame(spark, model.schema, f"(TIMESTAMP_NTZ'{late}', 'a', 5)")

    found = profile(contract(rows, model), Subject(model, cells, NOWHERE))

    assert [each.failing["known_rows"] for each in found] == [0, 0]


def test_a_known_row_whose_time_can_not_be_read_is_refused_when_it_is_declared():
    with pytest.raises(InstantFormatError, match="'soon' is neither a date nor an instant"):
        known_rows([({"ds": "soon", "shop": "a"}, {})], time_column="ds")


def test_rows_of_a_function_that_lost_their_cell_count_for_the_first_one(spark: SparkSession):
    result = judged(
        spark,
        python_audit("shops_earn", totals_below_zero),
        sale(1, "a", 5), sale(2, "a", -8), sale(2, "b", 1),
    )  # fmt: skip

    assert result.found == "1 of 3 rows fail the function totals_below_zero"
    assert result.cells == ("2024-01-01",)


@pytest.mark.parametrize("cell", ["r._cell", "DATE'2023-12-31' AS _cell"])
def test_rows_of_no_cell_of_the_batch_count_for_the_first_one(spark: SparkSession, cell: str):
    query = (
        f"SELECT {cell}, e.shop FROM VALUES ('a'), ('b') e(shop) LEFT JOIN {{rows}} r USING (shop)"  # noqa: S608
    )

    result = judged(spark, sql_audit("every_shop", f"{query} WHERE r.ds IS NULL"), sale(2, "a"))

    assert result.blocks
    assert result.failing_rows == 1
    assert result.cells == ("2024-01-01",)


def test_failing_rows_with_two_columns_of_one_name_are_shown(spark: SparkSession):
    query = (
        "SELECT r._cell, r.shop, e.Shop FROM {rows} r JOIN VALUES ('b') e(Shop) ON r.shop < e.Shop"
    )
    model = sales(audits=[sql_audit("before_b", query, warn=True)])
    rows = contract(frame(spark, model.schema, *GOOD), model)

    shown = failing_rows(rows, model.audits[0], Subject(model, days(1, 2), NOWHERE))

    assert shown == ('{"shop":"a","Shop (2)":"***"}',) * 2


def test_a_function_that_gives_no_frame_is_refused_by_name(spark: SparkSession):
    with pytest.raises(DeclarationError, match="audit 'odd': its function gave int"):
        judged(spark, python_audit("odd", no_frame), *GOOD)


def test_a_stored_audit_runs_its_stored_code(spark: SparkSession, monkeypatch: pytest.MonkeyPatch):
    audit = python_audit("short_names", long_names)
    (kept,) = stored_model(dumps(sales(audits=[audit]))).audits
    monkeypatch.setattr("backfill_assets_tests.warehouse.row_limits.LONGEST", 99)
    monkeypatch.setattr(row_audits, "long_names", no_frame)

    assert judged(spark, kept, sale(1, "abc")).failing_rows == 1


def test_failing_rows_and_lacking_entities_are_shown(spark: SparkSession):
    for audit, bad, _ in CASES:
        model = sales(audits=[audit])
        rows = contract(frame(spark, model.schema, *bad), model)
        shown = failing_rows(rows, audit, Subject(model, days(1, 2), NOWHERE))
        if audit.name in {"complete_shop", "known_rows", "no_long_name", "short_names"}:
            assert len(shown) == 1, audit.name


def test_a_model_with_every_audit_is_stored_and_read_back():
    every = [audit for audit, _, _ in CASES]
    every += [metric_within("amount"), trend_within("*"), fresh("at", "6h")]
    model = sales(columns=[*SALES_COLUMNS, AT], audits=every)

    assert stored_model(dumps(model)) == model


def test_cells_that_are_recorded_empty_are_judged_without_spark():
    audits = [audit for audit, _, _ in CASES]
    audits += [metric_within("amount"), trend_within("*"), fresh("at", "6h")]
    model = sales(columns=[*SALES_COLUMNS, AT], audits=audits)

    results = judge(audits, empty_profiles(model, days(1)), {}, DAILY)

    assert len(results) == len(audits)
