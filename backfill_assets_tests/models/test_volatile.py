# ruff: noqa: S608 - the SQL is the tests' own
from __future__ import annotations

import pytest

from backfill_assets.models.volatile import VolatileQueryError, check_stable
from backfill_assets_tests.builders import a_model


def sql(expression: str, table: str = "web.events") -> str:
    return (
        f"SELECT ds, id, {expression} AS cost FROM {table} "
        "WHERE ds >= :start_ds AND ds < :end_ds"
    )  # fmt: skip


VOLATILE_SQL = [
    ("rand()", "rand"),
    ("RAND(42)", "rand"),
    ("uuid()", "uuid"),
    ("current_timestamp()", "current_timestamp"),
    ("current_timestamp", "current_timestamp"),
    ("now()", "now"),
    ("curdate()", "curdate"),
    ("unix_timestamp()", "unix_timestamp"),
    ("TIMESTAMP 'now'", "now"),
    ("DATE 'today'", "today"),
    ("monotonically_increasing_id()", "monotonically_increasing_id"),
    ("SHUFFLE(ids)", "shuffle"),
    ("COALESCE(cost, ROUND(randn(), 2))", "randn"),
]


@pytest.mark.parametrize(("expression", "function"), VOLATILE_SQL)
def test_a_volatile_function_of_sql_is_refused_by_name(expression: str, function: str):
    with pytest.raises(VolatileQueryError, match="volatile=True") as caught:
        check_stable(a_model(sql=sql(expression)))

    assert caught.value.function == function


def test_a_sample_is_volatile():
    with pytest.raises(VolatileQueryError, match="tablesample"):
        check_stable(a_model(sql=sql("1", "web.events TABLESAMPLE (10 PERCENT)")))


@pytest.mark.parametrize(
    "expression",
    ["'rand()'", "now", "`uuid`", "unix_timestamp(ds)", "CAST('2024-01-01' AS DATE)", "hash(id)"],
)
def test_text_columns_and_stable_functions_are_let_through(expression: str):
    check_stable(a_model(sql=sql(expression)))


def test_a_model_may_declare_itself_volatile():
    check_stable(a_model(sql=sql("rand()"), volatile=True))
