from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals import Hourly
from backfill_assets.models.audit import (
    distinct_within,
    known_rows,
    metric_within,
    percentile_within,
    reconciles,
    row_rule,
    sql_audit,
    total_within,
    trend_within,
)
from backfill_assets.models.column import Column
from backfill_assets.models.graph import build_graph, stored_graph
from backfill_assets_tests.builders import COLUMNS, a_model, a_source, a_whole

if TYPE_CHECKING:
    from backfill_assets.models.audit import Audit

KNOWN = [({"id": 1, "ds": date(2024, 1, 3)}, {"cost": 3})]
NOTE = Column("note", "string")


def declared(audit: Audit) -> tuple[list, list]:
    sql = "SELECT *, 'x' AS note FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
    return [a_model(columns=[*COLUMNS, NOTE], sql=sql, audits=[audit])], [a_source()]


@pytest.mark.parametrize(
    ("audit", "words"),
    [
        (
            row_rule("r", "sum(cost) > 0"),
            r"with `SUM\(cost\)` in its predicate; expected a condition o",
        ),
        (
            row_rule("r", "row_number() OVER (ORDER BY id) > 0"),
            r"with `ROW_NUMBER\(\) OVER \(ORDER",
        ),
        (
            row_rule("r", "id IN (SELECT id FROM web.events)"),
            r"with `\(SELECT id FROM web.events\)`",
        ),
        (row_rule("r", "ds >= :start_ds"), "with `:start_ds` in its predicate"),
        (
            sql_audit("r", "CHOOSE * FROM {rows}"),
            "can't be read: .* {rows}' .* found CHOOSE; expected",
        ),
        (sql_audit("r", "INSERT INTO x SELECT * FROM {rows}"), "can't be read: .* found INSERT;"),
        (sql_audit("r", "SELECT 'it FROM {rows}"), "can't be read: .*never closed"),
        (
            sql_audit("r", "SELECT * FROM {rows} JOIN web.events USING (id)"),
            "that reads web.events; ",
        ),
        (
            sql_audit("r", "SELECT * FROM {rows} WHERE ds >= :end_ds"),
            "with :end_ds; expected a query w",
        ),
        (
            known_rows(KNOWN),
            "without a time column; expected time_column='ds': it says in which cell",
        ),
        (total_within("ds", 0, 1), "on 'ds', which is date; expected a column of n"),
        (percentile_within("ds", 0.5, 0, 1), "on 'ds', which is date"),
        (metric_within("ds", 0.1), "on 'ds', which is date"),
        (trend_within("ds"), "on 'ds', which is date"),
        (reconciles("ds", "web.events"), "on 'ds', which is date"),
    ],
)
def test_an_audit_that_no_batch_could_pass_does_not_load_and_what_is_stored_runs(
    audit: Audit, words: str
):
    models, sources = declared(audit)
    with pytest.raises(
        DeclarationError, match=rf"^model 'web.visits': found audit '\w+' .*{words}"
    ):
        build_graph(models, sources)
    stored_graph(models, sources)


@pytest.mark.parametrize(
    "audit",
    [
        row_rule("r", "EXISTS(ARRAY(cost), each -> each > 0) AND GREATEST(id, cost) > 0"),
        row_rule("r", "note RLIKE '^a|b$' OR aggregate(array(id), 0L, (sum, x) -> sum + x) > 0"),
        sql_audit("r", "WITH a AS (SELECT * FROM {rows}) SELECT * FROM a JOIN {rows} b USING (id)"),
        sql_audit("r", "FROM {rows} |> WHERE note = '{braces}'"),
        known_rows(KNOWN, time_column="ds"),
        total_within("note", 0, 1),
        distinct_within("ds", 0, 1),
        metric_within("*", 0.1),
        reconciles("*", "web.events", "cost"),
    ],
)
def test_an_audit_that_a_batch_may_pass_loads(audit: Audit):
    build_graph(*declared(audit))


def test_known_rows_of_a_table_that_is_one_cell_need_no_time():
    build_graph([a_whole("web.all", audits=[known_rows(KNOWN)])], [a_source()])


def test_known_rows_of_hours_need_one():
    hourly = a_model(cadence=Hourly(start="2024-01-01"), audits=[known_rows(KNOWN)])
    with pytest.raises(DeclarationError, match="without a time column"):
        build_graph([hourly], [a_source(cadence=Hourly(start="2024-01-01"))])
