# ruff: noqa: S608 - the SQL is the tests' own
from __future__ import annotations

import pytest

from backfill_assets.models.column import Column
from backfill_assets.models.python.function_query import FunctionQuery
from backfill_assets.models.sql.lineage import OPAQUE, Lineage, lineage_of
from backfill_assets_tests.builders import COLUMNS, a_graph, a_model, a_source

ORDERS = a_source("shop.orders", columns=[*COLUMNS, Column("tax", "double")])
EVENTS = a_source("web.events", columns=[*COLUMNS, Column("Page", "struct<url:string>")])
BOUND = "ds >= :start_ds AND ds < :end_ds"


def traced(sql: str, *upstreams: str) -> Lineage:
    model = a_model(sql=sql, upstreams=upstreams or ["web.events"])
    return lineage_of(a_graph(model, sources=[ORDERS, EVENTS]), model)


def test_a_column_that_is_not_read_is_not_in_reads():
    lineage = traced(f"SELECT ds, id AS id, cost * 2 AS cost FROM web.events WHERE {BOUND}")

    assert lineage.reads == {"web.events": {"ds", "id", "cost"}}
    assert lineage.outputs == {
        "ds": (("web.events", "ds"),),
        "id": (("web.events", "id"),),
        "cost": (("web.events", "cost"),),
    }


def test_columns_are_followed_through_ctes_unions_and_joins():
    lineage = traced(
        "WITH spent AS (SELECT ds, id, SUM(cost) AS spent FROM web.events "
        f"WHERE {BOUND} GROUP BY ds, id UNION ALL SELECT ds, id, tax FROM shop.orders "
        f"WHERE {BOUND}) "
        "SELECT s.ds, s.id, s.spent + o.cost AS cost FROM spent s "
        "JOIN shop.orders o ON o.id = s.id",
        "web.events", "shop.orders",
    )  # fmt: skip

    assert lineage.reads == {
        "web.events": {"ds", "id", "cost"},
        "shop.orders": {"ds", "id", "tax", "cost"},
    }
    assert lineage.outputs["cost"] == (
        ("shop.orders", "cost"),
        ("shop.orders", "tax"),
        ("web.events", "cost"),
    )


def test_a_star_reads_the_declared_columns():
    assert traced(f"SELECT * FROM web.events WHERE {BOUND}").reads == {
        "web.events": {"ds", "id", "cost", "Page"}
    }


def test_a_hint_that_names_a_table_reads_no_column():
    lineage = traced(
        "SELECT /*+ BROADCAST(e), REPARTITION(3) */ ds, id, 1 AS cost "
        f"FROM web.events e WHERE {BOUND}"
    )
    assert lineage.reads == {"web.events": {"ds", "id"}}


def test_the_unit_of_a_difference_of_times_is_no_column():
    lineage = traced(f"SELECT ds, id, DATEDIFF(day, ds, ds) AS cost FROM web.events WHERE {BOUND}")
    assert lineage.reads == {"web.events": {"ds", "id"}}


def test_counting_rows_reads_no_column():
    lineage = traced(
        f"SELECT ds, 1 AS id, COUNT(*) AS cost FROM web.events WHERE {BOUND} GROUP BY ds"
    )

    assert lineage.reads == {"web.events": {"ds"}}
    assert lineage.outputs["cost"] == ()


def test_a_column_counts_wherever_it_occurs():
    lineage = traced(
        "SELECT e.ds, 1 AS id, 2 AS cost FROM web.events e "
        "WHERE e.ds >= :start_ds AND e.ds < :end_ds AND EXISTS "
        "(SELECT 1 FROM shop.orders o WHERE o.id = e.id AND o.tax > 0) ORDER BY e.cost",
        "web.events", "shop.orders",
    )  # fmt: skip

    assert lineage.reads == {"web.events": {"ds", "id", "cost"}, "shop.orders": {"id", "tax"}}


def test_a_column_counts_in_a_cte_of_a_query_inside_a_filter():
    lineage = traced(
        f"SELECT e.ds, 1 AS id, 2 AS cost FROM web.events e WHERE e.{BOUND.replace('AND ', 'AND e.')} AND "
        "EXISTS (WITH o AS (SELECT tax FROM shop.orders WHERE orders.id = e.id) SELECT 1 FROM o)",
        "web.events", "shop.orders",
    )  # fmt: skip

    assert "id" in lineage.reads.get("web.events", {"id"})


def test_columns_are_spelled_as_the_upstream_spells_them():
    lineage = traced(f"SELECT DS AS ds, ID AS id, PAGE.url AS cost FROM Web.Events WHERE {BOUND}")
    assert lineage.reads == {"web.events": {"ds", "id", "Page"}}


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT ds, id, HASH(STRUCT(*)) AS cost FROM web.events WHERE {BOUND}",
        f"SELECT ds, id, TO_JSON(STRUCT(e.*)) AS cost FROM web.events e WHERE {BOUND}",
        f"SELECT ds, id, TO_JSON(e) AS cost FROM web.events e WHERE {BOUND}",
        f"SELECT ds, id, e AS cost FROM web.events e WHERE {BOUND}",
        f"SELECT ds, id, unheard_of AS cost FROM web.events e WHERE {BOUND}",
        f"SELECT ds, a AS id, 1 AS cost FROM web.events AS e(ds, a, b, c) WHERE {BOUND}",
        f"SELECT ds, id, 1 AS cost FROM web.events e, f(TABLE(web.events)) WHERE {BOUND}",
        f"SELECT * FROM web.events PIVOT (SUM(cost) FOR id IN (1, 2)) WHERE {BOUND}",
        f"SELECT /*+ REPARTITION(3, cost) */ ds, id, 1 AS cost FROM web.events WHERE {BOUND} LIMIT 3",
    ],
)
def test_what_is_not_read_by_name_counts_as_reading_all(sql: str):
    assert traced(sql).reads == {}


def test_a_function_is_opaque():
    model = a_model(query=FunctionQuery("f", "def f(inputs, interval):\n    return 1\n"))
    assert lineage_of(a_graph(model), model) == OPAQUE


ITSELF = "SELECT c.ds, c.id, c.cost FROM chain c WHERE c.id < 9"
FIRST = f"SELECT ds, id, cost FROM web.events WHERE {BOUND}"


@pytest.mark.parametrize(
    "union",
    [
        f"{FIRST} UNION ALL {ITSELF}",
        f"{ITSELF} UNION ALL {FIRST}",
        f"{FIRST} UNION ALL {FIRST} UNION ALL {ITSELF}",
        f"{FIRST} UNION ALL ({FIRST} UNION ALL {ITSELF})",
        f"{FIRST} UNION ALL SELECT ds, id, (SELECT MAX(cost) FROM chain) FROM ({ITSELF})",
    ],
)
def test_a_recursive_cte_ends(union: str):
    lineage = traced(f"WITH RECURSIVE chain AS ({union}) SELECT ds, id, cost FROM chain")
    assert lineage.reads in ({"web.events": {"ds", "id", "cost"}}, {})


def test_an_upstream_that_the_query_leaves_out_is_read_as_a_whole():
    lineage = traced(
        f"SELECT ds, id, cost FROM web.events WHERE {BOUND}", "web.events", "shop.orders"
    )
    assert "shop.orders" not in lineage.reads


UNUSED = [
    f"WITH e AS (SELECT * FROM web.events WHERE {BOUND}) SELECT ds, id, 1 AS cost FROM e",
    f"WITH e AS (SELECT * FROM web.events WHERE {BOUND}) SELECT ds, id, 1 AS cost FROM e ORDER BY 1",
    (
        "WITH e AS (SELECT ds, id, SUM(cost) OVER (PARTITION BY id) AS s FROM web.events "
        f"WHERE {BOUND}) SELECT ds, id, 1 AS cost FROM e"
    ),
    (
        f"SELECT ds, id, 1 AS cost FROM (SELECT ds, id, cost FROM web.events WHERE {BOUND} "
        f"UNION ALL SELECT ds, id, cost FROM web.events WHERE {BOUND})"
    ),
    (
        f"WITH a AS (SELECT * FROM web.events WHERE {BOUND}), b AS (SELECT ds, id, SUM(cost) AS c "
        "FROM a GROUP BY ds, id) SELECT ds, id, 1 AS cost FROM b"
    ),
]


@pytest.mark.parametrize("sql", UNUSED)
def test_what_a_cte_selects_for_nobody_is_not_read(sql: str):
    assert traced(sql).reads == {"web.events": {"ds", "id"}}


DECIDING = [
    "SELECT DISTINCT ds, id, cost FROM web.events WHERE {}",
    "SELECT ds, id, EXPLODE(cost) AS c FROM web.events WHERE {}",
    "SELECT ds, id, INLINE(cost) FROM web.events WHERE {}",
    "SELECT ds, id, STACK(2, cost, 1) FROM web.events WHERE {}",
    "SELECT ds, id, JSON_TUPLE(cost, 'x') FROM web.events WHERE {}",
    "SELECT ds, id, cost, COUNT(*) AS n FROM web.events WHERE {} GROUP BY ALL",
    "SELECT ds, id, -cost AS m FROM web.events WHERE {} GROUP BY 1, 2, 3",
    "SELECT ds, id, -cost AS m FROM web.events WHERE {} ORDER BY 3 LIMIT 3",
    "SELECT ds, id, MAX(cost) AS m FROM web.events WHERE {} GROUP BY ds, id HAVING m > 1",
    "SELECT ds, id, ROW_NUMBER() OVER (ORDER BY cost) AS m FROM web.events WHERE {} QUALIFY m = 1",
    "SELECT ds, id, cost FROM web.events WHERE {0} UNION SELECT ds, id, 1 FROM web.events WHERE {0}",
    ("SELECT ds, id, cost FROM web.events WHERE {0} "
    "EXCEPT ALL SELECT ds, id, 1 FROM web.events WHERE {0}"),
]  # fmt: skip


@pytest.mark.parametrize("cte", DECIDING)
def test_what_decides_about_rows_is_read_though_nobody_selects_it(cte: str):
    lineage = traced(f"WITH e AS ({cte.format(BOUND)}) SELECT ds, id, 1 AS cost FROM e")
    assert lineage.reads == {"web.events": {"ds", "id", "cost"}}


SORTED = [
    "SELECT ds, id, cost + 1 AS m FROM web.events WHERE {} ORDER BY ALL LIMIT 3",
    "SELECT ds, id, cost + 1 AS m FROM web.events WHERE {} SORT BY 3 LIMIT 3",
    "SELECT ds, id, STRUCT(cost) AS m FROM web.events WHERE {} ORDER BY m.cost LIMIT 3",
    ("SELECT ds, id, cost AS m FROM web.events WHERE {0} "
    "UNION ALL SELECT ds, id, 1 FROM web.events WHERE {0} ORDER BY ALL LIMIT 3"),
]  # fmt: skip


@pytest.mark.parametrize("query", SORTED)
def test_what_decides_which_rows_limit_keeps_is_read_though_no_query_selects_it(query: str):
    inner = query.format(BOUND)
    for sql in (
        f"WITH e AS ({inner}) SELECT ds, id, 1 AS cost FROM e",
        f"SELECT ds, id, 1 AS cost FROM ({inner})",
    ):
        assert traced(sql).reads == {"web.events": {"ds", "id", "cost"}}


def test_an_output_is_followed_by_name_through_a_union_by_name_and_into_a_scalar_subquery():
    lineage = traced(
        f"SELECT ds, id, cost FROM web.events WHERE {BOUND} UNION ALL BY NAME "
        f"SELECT (SELECT MAX(tax) FROM shop.orders) AS tax, cost AS id, ds FROM shop.orders WHERE {BOUND}",
        "web.events", "shop.orders",
    )  # fmt: skip

    assert lineage.outputs == {
        "ds": (("shop.orders", "ds"), ("web.events", "ds")),
        "id": (("shop.orders", "cost"), ("web.events", "id")),
        "cost": (("web.events", "cost"),),
        "tax": (("shop.orders", "tax"),),
    }


@pytest.mark.parametrize("join", ["JOIN o USING (id, cost)", "NATURAL JOIN o"])
def test_the_columns_of_a_join_are_read(join: str):
    lineage = traced(
        f"WITH e AS (SELECT ds, id, cost FROM web.events WHERE {BOUND}), "
        f"o AS (SELECT id, cost, tax FROM shop.orders WHERE {BOUND}) "
        f"SELECT ds, 1 AS id, 1 AS cost FROM e {join}",
        "web.events", "shop.orders",
    )  # fmt: skip

    assert lineage.reads == {
        "web.events": {"ds", "id", "cost"},
        "shop.orders": {"ds", "id", "cost"},
    }


@pytest.mark.parametrize(
    "sql",
    [
        f"FROM web.events |> WHERE {BOUND} |> SELECT ds, id, cost",
        f"SELECT ds, id, max_by(cost, id, 2)[0]::double AS cost FROM web.events WHERE {BOUND}",
        f"SELECT ds, id, ds - INTERVAL 1 DAY 2 HOURS AS cost FROM web.events WHERE {BOUND}",
        (
            f"SELECT ds, id, cost FROM (SELECT ds, id, cost FROM web.events WHERE {BOUND} UNION ALL "
            f"SELECT ds, id FROM web.events WHERE {BOUND})"
        ),
    ],
)
def test_sql_that_is_not_analysed_loads_and_reads_everything(sql: str):
    assert traced(sql).reads == {}
