"""What Spark does while its classes are archived: the kinds of queries that batches consist of."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

QUERIES = (
    "SELECT day, COUNT(*), SUM(cost), MAX(name), APPROX_COUNT_DISTINCT(id) FROM rows GROUP BY day",
    "SELECT BIT_XOR(XXHASH64(id, name, cost)), COUNT_IF(cost IS NULL), MIN(TO_JSON(STRUCT(*))) FROM rows",
    "SELECT a.day, SUM(b.cost) FROM rows a LEFT JOIN rows b ON a.id = b.id AND b.day < a.day GROUP BY 1",
    "SELECT *, ROW_NUMBER() OVER (PARTITION BY day ORDER BY cost) AS place FROM rows QUALIFY place < 3",
    "SELECT DISTINCT DATE_TRUNC('MONTH', day) FROM rows WHERE day >= DATE'2024-01-02' ORDER BY 1",
)


def work(spark: SparkSession, folder: str) -> None:
    """Write a small Delta table and Parquet files by day, read them back and aggregate them."""
    rows = spark.range(2000).selectExpr(
        "id",
        "DATE_ADD(DATE'2024-01-01', CAST(id % 5 AS INT)) AS day",
        "CAST(id * 3 AS DECIMAL(18,2)) AS cost",
        "CONCAT('name ', id) AS name",
    )
    for form in ("delta", "parquet"):
        rows.repartition(2, "day").write.format(form).partitionBy("day").save(f"{folder}/{form}")
    for form in ("delta", "parquet"):
        spark.read.format(form).load(f"{folder}/{form}").createOrReplaceTempView("rows")
        for query in QUERIES:
            spark.sql(query).collect()


if __name__ == "__main__":
    session = SparkSession.builder.getOrCreate()
    work(session, sys.argv[1])
    session.stop()
