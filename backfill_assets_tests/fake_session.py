"""A session without a JVM, for the fake warehouse: as much of Spark as takes SQL for a text, on DuckDB.

Whatever else is asked of it is refused, with words that name it.
"""

# ruff: noqa: N802, S608 - Spark's names, and the tests' own SQL

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import sqlglot
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from pyspark.sql import Row, types as T
from sqlglot import exp

from backfill_assets.models.column import quoted
from backfill_assets.warehouse.spark.spark_errors import (
    DamagedFileError,
    JobsCancelledError,
    PinGoneError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class NeedsRealSparkError(Exception):
    """A test on the fake asks for what only Spark does."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the fake warehouse has no {what}: mark the test `spark`")


class Conf(dict[str, str]):
    """The settings of a session, which change nothing."""

    def set(self, key: str, value: object) -> None:
        self[key] = str(value)


_NUMBERS = count()


class Session:
    """As much of a Spark session as speaks SQL."""

    def __init__(self) -> None:
        self.conf = Conf()
        self._connection = _database().cursor()

    def newSession(self) -> Session:
        return Session()

    def interruptAll(self) -> None:
        self._connection.interrupt()

    def sql(self, text: str) -> Frame:
        tree = sqlglot.parse_one(text, read="spark")
        for table in [*tree.find_all(exp.Table)]:
            if (at := table.args.get("version")) is not None:
                read = self.load(table.name, int(at.expression.name))
                table.replace(exp.to_table(read.viewed()))
        return self.frame(_in_duckdb(tree))

    def frame(self, text: str) -> Frame:
        """What a query of DuckDB gives."""
        try:
            return Frame(self, self._connection.sql(text))
        except duckdb.InterruptException as error:
            raise _cancelled(error) from error

    def execute(self, text: str) -> None:
        """Run a statement of DuckDB."""
        self._connection.execute(text)

    def held(self, table: pa.Table) -> Frame:
        """Rows that are there."""
        name = f"held_{next(_NUMBERS)}"
        self._connection.register(name, table)
        return self.frame(f"FROM {name}")

    def load(self, path: str, delta_version: int) -> Frame:
        try:
            table = DeltaTable(path, version=delta_version)
        except DeltaError as error:
            raise PinGoneError(path=path, found=str(error)) from error
        try:
            return self.held(table.to_pyarrow_table())
        except FileNotFoundError as error:
            raise PinGoneError(path=path, found=str(error)) from error
        except OSError as error:
            raise DamagedFileError(path=path, found=str(error)) from error

    @property
    def read(self) -> Reader:
        return Reader(self)

    def createDataFrame(self, rows: Sequence[Any], schema: str | T.StructType) -> Frame:
        assert not rows
        if isinstance(schema, T.StructType):
            schema = ", ".join(
                f"{quoted(field.name)} {field.dataType.simpleString()}" for field in schema
            )
        declared = sqlglot.parse_one(f"CREATE TABLE t ({schema})", read="spark")
        nothing = (
            f'CAST(NULL AS {column.args["kind"].sql("duckdb")}) AS "{column.name}"'
            for column in declared.find_all(exp.ColumnDef)
        )
        return self.frame(f"SELECT {', '.join(nothing)} WHERE FALSE")

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name == "cloneSession":  # of Connect alone
            raise AttributeError(name)
        raise NeedsRealSparkError(f"`{name}` of a session")


@dataclass
class Reader:
    """Reads Delta tables."""

    session: Session
    delta_version: int = 0

    def format(self, name: str) -> Reader:
        assert name == "delta"
        return self

    def option(self, _: str, delta_version: int) -> Reader:
        return Reader(self.session, delta_version)

    def load(self, path: str) -> Frame:
        return self.session.load(path, self.delta_version)


@dataclass(frozen=True)
class Frame:
    """As much of a data frame as speaks SQL."""

    sparkSession: Session  # noqa: N815
    relation: duckdb.DuckDBPyRelation

    @property
    def columns(self) -> list[str]:
        return self.relation.columns

    @property
    def schema(self) -> T.StructType:
        return T.StructType(
            [
                T.StructField(name, _spark_type(str(dtype)))
                for name, dtype in zip(self.relation.columns, self.relation.types, strict=True)
            ]
        )

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return [(field.name, field.dataType.simpleString()) for field in self.schema]

    def select(self, *columns: str) -> Frame:
        return self.selectExpr(*columns)

    def selectExpr(self, *columns: str) -> Frame:
        return self._with(self.relation.project(", ".join(map(_expression, columns))))

    def where(self, condition: str) -> Frame:
        return self._with(self.relation.filter(_expression(condition)))

    def drop(self, *names: str) -> Frame:
        return self.selectExpr(*(quoted(name) for name in self.columns if name not in names))

    def distinct(self) -> Frame:
        return self._with(self.relation.distinct())

    def unionByName(self, other: Frame) -> Frame:
        return self._with(self.relation.union(other.select(*map(quoted, self.columns)).relation))

    def join(self, other: Frame, columns: Sequence[str], how: str) -> Frame:
        """Keep the rows whose values the other frame has (left_semi), or has not (left_anti)."""
        if how not in {"left_semi", "left_anti"}:
            raise NeedsRealSparkError(f"{how} join")
        names, kind = ", ".join(f'"{name}"' for name in columns), how.removeprefix("left_")
        return self.sparkSession.frame(
            f"SELECT * FROM {self.viewed()} {kind} JOIN {other.viewed()} USING ({names})"
        )

    def groupBy(self, name: str) -> Groups:
        return Groups(self, name)

    def orderBy(self, name: str) -> Frame:
        return self._with(self.relation.order(f'"{name}"'))

    def cache(self) -> Frame:
        return self

    def unpersist(self) -> None:
        return None

    def isEmpty(self) -> bool:
        return not self.collect()

    def createOrReplaceTempView(self, name: str) -> None:
        query = self.relation.sql_query()
        self.sparkSession.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS {query}')

    def viewed(self) -> str:
        """Name a view of it."""
        name = f"view_{next(_NUMBERS)}"
        self.createOrReplaceTempView(name)
        return name

    def asked(self, select: str, rest: str = "") -> list[Row]:
        """Answer a query over its rows, in Spark's SQL."""
        return self.sparkSession.sql(f"SELECT {select} FROM {self.viewed()} {rest}").collect()

    def collect(self) -> list[Row]:
        return [Row(*self.columns)(*values) for values in self._run(self.relation.fetchall)]

    def arrow(self) -> pa.Table:
        return self._run(self.relation.to_arrow_table)

    def _run(self, how: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            return how()
        except duckdb.InterruptException as error:
            raise _cancelled(error) from error

    def _with(self, relation: duckdb.DuckDBPyRelation) -> Frame:
        return Frame(self.sparkSession, relation)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        raise NeedsRealSparkError(f"`{name}` of a data frame")


@dataclass(frozen=True)
class Groups:
    """The rows of a frame by one column."""

    rows: Frame
    by: str

    def count(self) -> Frame:
        return self._asked('count(1) AS "count"')

    def agg(self, wanted: Mapping[str, str]) -> Frame:
        return self._asked(*(f'{what}("{name}")' for name, what in wanted.items()))

    def _asked(self, *wanted: str) -> Frame:
        text = f"{self.by}, {', '.join(wanted)} FROM {self.rows.viewed()} GROUP BY {self.by}"
        return self.rows.sparkSession.frame(f"SELECT {text}")


def _cancelled(error: Exception) -> JobsCancelledError:
    return JobsCancelledError(path="a table", found=str(error))


@lru_cache(maxsize=1)
def _database() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect(":memory:", config={"threads": 1})
    made.execute("SET GLOBAL TimeZone = 'UTC'")
    made.execute("CREATE MACRO pmod(a, b) AS ((a % b) + b) % b")
    zero = "error('[DIVIDE_BY_ZERO] Division by zero')"
    made.execute(f"CREATE MACRO divisor(b) AS CASE WHEN b = 0 THEN {zero} ELSE b END")
    made.execute("CREATE MACRO raise_error(words) AS error(words)")
    made.execute(
        "CREATE MACRO try_sum(v) AS sum(v)"
    )  # Spark's gives NULL where a sum has too many digits
    made.execute("CREATE MACRO timestamp_seconds(s) AS make_timestamptz(s * 1000000)")
    return made


@lru_cache(maxsize=10_000)
def _expression(text: str) -> str:
    if not isinstance(text, str):
        raise NeedsRealSparkError(f"column like {text!r}")
    return "*" if text == "*" else _in_duckdb(sqlglot.parse_one(text, read="spark"))


def _in_duckdb(tree: exp.Expr) -> str:
    """Write Spark's SQL as DuckDB's, where the translator's own answer means something else."""
    for node in [*tree.walk()]:
        match node:
            case exp.GenerateSeries() if node.args.get("step") is None:  # of dates
                node.set("step", exp.Interval(this=exp.Literal.string("1"), unit=exp.var("DAY")))
            case exp.AtTimeZone(this=exp.Cast() as instant):  # a local time there
                instant.set("to", exp.DataType.build("TIMESTAMPTZ"))
            case exp.JSONFormat():
                node.set("options", None)
            case exp.Table(this=exp.Anonymous(name="range")):
                named = {"this": exp.to_identifier("r"), "columns": [exp.to_identifier("id")]}
                node.set("alias", exp.TableAlias(**named))
            case exp.Div():
                node.set("expression", exp.func("divisor", node.expression))
                node.set("safe", None)
            case _:
                continue
    return tree.sql("duckdb").replace("DATE_TRUNC('MM'", "DATE_TRUNC('MONTH'")


_TYPES: Mapping[str, T.DataType] = {
    "BIGINT": T.LongType(), "HUGEINT": T.DecimalType(38, 0), "INTEGER": T.IntegerType(), "DATE": T.DateType(),
    "VARCHAR": T.StringType(), "BOOLEAN": T.BooleanType(), "DOUBLE": T.DoubleType(), "FLOAT": T.FloatType(),
    "TIMESTAMP WITH TIME ZONE": T.TimestampType(), "TIMESTAMP": T.TimestampNTZType(), "BLOB": T.BinaryType(),
    "SMALLINT": T.ShortType(), "TINYINT": T.ByteType(),
}  # fmt: skip


def _spark_type(name: str) -> T.DataType:
    if name.startswith("DECIMAL("):
        return T.DecimalType(*map(int, name.removeprefix("DECIMAL(").rstrip(")").split(",")))
    if name not in _TYPES:
        raise NeedsRealSparkError(f"type {name}")
    return _TYPES[name]
