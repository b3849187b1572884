"""Small tables with all that makes two queries differ: NULLs, duplicates, ties, an empty day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container

    from pyspark.sql import DataFrame, SparkSession

_EVENTS = """
SELECT ds, id, k, n, x, y, s, TIMESTAMP '2024-12-30 23:30:00' + MAKE_DT_INTERVAL(id, 0) AS t,
  CASE WHEN x IS NULL THEN NULL ELSE ARRAY(x, y, 7) END AS arr,
  MAP('a', x, 'A', y, 'b', n) AS mp, NAMED_STRUCT('A', x, 'b', s) AS st
FROM VALUES
  (DATE '2024-01-01', 1, 'a', 1, 1, 1, 'ab'), (DATE '2024-01-01', 2, 'a', 1, 1, 5, 'abc'),
  (DATE '2024-01-01', 3, 'a', 2, 3, NULL, 'O'), (DATE '2024-01-01', 3, 'a', 2, 3, NULL, 'O'),
  (DATE '2024-01-03', 4, 'b', 1, NULL, 2, NULL), (DATE '2024-01-03', 5, 'b', 2, 2, 2, 'x y'),
  (DATE '2024-01-03', 6, 'b', NULL, 5, 0, 'abc'), (DATE '2024-02-01', 7, NULL, 1, 2, 9, ''),
  (DATE '2024-02-01', 8, NULL, NULL, NULL, NULL, NULL), (DATE '2024-02-29', 9, 'c', 2, 4, 1, 'A'),
  (DATE '2025-02-01', 10, 'c', 2, 0, 1, 'a'), (DATE '2025-02-01', 11, 'A', 1, 4, 0, 'b')
AS v(ds, id, k, n, x, y, s)
"""
_DIMENSION = """
SELECT * FROM VALUES ('a', 1, 1), ('a', 2, 4), ('b', 1, 2), ('b', 1, 2), (NULL, 2, 3), ('d', 1, 1)
AS v(k, n, w)
"""
TABLES = {"e": _EVENTS, "f": _DIMENSION}
_FAR = 3
"""By how many rows values move, which puts others beside those that stay."""


def put_up(spark: SparkSession) -> None:
    """Make the tables readable by name, each computed once."""
    for name in TABLES:
        table(spark, name).createOrReplaceTempView(name)


def table(spark: SparkSession, name: str, changed: Container[str] = ()) -> DataFrame:
    """Compute a table; with other values in some columns, while its other columns and the order of its rows stay."""
    made = spark.sql(TABLES[name])
    rows = made.collect()
    others = [
        tuple(
            _another(rows[(at + _FAR) % len(rows)][column]) if column in changed else row[column]
            for column in made.columns
        )
        for at, row in enumerate(rows)
    ]
    return spark.createDataFrame(others, made.schema).coalesce(1)


def _another(value: Any) -> Any:  # noqa: ANN401 - a value of any column
    match value:
        case int():
            return value * 7 - 3
        case str():
            return value + "q"
        case _:
            return value
