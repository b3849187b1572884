"""SQL that names what an environment publishes: a view for each model, over the very versions of one moment."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.models.model import CELL_COLUMN
from backfill_assets.snapshots.environment import PROD
from backfill_assets.warehouse.files.cell_files import files_of
from backfill_assets.warehouse.files.cells import cell_of_text
from backfill_assets.warehouse.files.layers import answering, parts_of
from backfill_assets.warehouse.files.stored_columns import stored_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from deltalake import DeltaTable

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.layers import Part
    from backfill_assets.warehouse.files.tables import Table

_EVERYTHING = "TRUE"
_CATALOG = "delta"
"""What Trino's catalog is called in the examples of its Delta connector."""


class Dialect(StrEnum):
    """For which engine views are written."""

    DUCKDB = "duckdb"
    SPARK = "spark"
    TRINO = "trino"


@dataclass(frozen=True, slots=True)
class View:
    """A model as an environment reads it.

    Attributes:
        model: the model of the environment's snapshot.
        table: what it is read from, layers included.
    """

    model: Model
    table: Table


def view_file(dialect: Dialect, environment: str, views: Mapping[str, View]) -> str:
    """Write a file of SQL that makes a view of each model, in place of the one before.

    A view has its model's name. In another environment than `prod` its schema is named
    ``<subject>__<environment>``.

    Raises:
        CorruptTableError: a table's log is damaged.
    """
    placed = {name: _placed(name, environment) for name in sorted(views)}
    schemas = dict.fromkeys(schema for schema, _ in placed.values())
    statements = [f"CREATE SCHEMA IF NOT EXISTS {_schema(schema, dialect)}" for schema in schemas]
    for name, (schema, table) in placed.items():
        within = _schema(schema, dialect)
        statements += _registered(dialect, schema, views[name])
        query = "\nUNION ALL\n".join(_selects(dialect, within, views[name]))
        view = f"{within}.{_identifier(table, dialect)}"
        statements.append(f"CREATE OR REPLACE VIEW {view} AS\n{query}")
    if dialect is Dialect.DUCKDB:
        statements = ["BEGIN TRANSACTION", *statements, "COMMIT"]
    return "".join(f"{statement};\n" for statement in statements)


def _placed(name: str, environment: str) -> tuple[str, str]:
    subject, table = name.split(".")
    return (subject if environment == PROD else f"{subject}__{environment}"), table


def _schema(schema: str, dialect: Dialect) -> str:
    named = _identifier(schema, dialect)
    return f"{_CATALOG}.{named}" if dialect is Dialect.TRINO else named


def _registered(dialect: Dialect, schema: str, view: View) -> Iterator[str]:
    """Write the calls that make tables known to Trino, which refuses a table that it knows already."""
    if dialect is not Dialect.TRINO:
        return
    for part in parts_of(view.model.cadence, view.table):
        named = (
            f"schema_name => {_text(schema, dialect)}, "
            f"table_name => {_text(_folder(part.path), dialect)}, "
            f"table_location => {_text(part.path, dialect)}"
        )
        yield f"CALL {_CATALOG}.system.register_table({named})"


def _selects(dialect: Dialect, within: str, view: View) -> list[str]:
    """Write a query for each table that answers for some cells, or one without rows."""
    if dialect is Dialect.DUCKDB:
        selects = [
            select
            for (layer, above), part in zip(
                answering(view.table), parts_of(view.model.cadence, view.table), strict=True
            )
            if (select := _of_files(view.model, layer, above, part)) is not None
        ]
    else:
        selects = [
            _of_table(dialect, within, view.model, part)
            for part in parts_of(view.model.cadence, view.table)
        ]
    return selects or [f"SELECT {_nulls(view.model, dialect)} WHERE FALSE"]


def _of_table(dialect: Dialect, within: str, model: Model, part: Part) -> str:
    """Let the engine read a Delta table at its version."""
    if dialect is Dialect.SPARK:
        rows = f"delta.{_identifier(part.path, dialect)} VERSION AS OF {part.delta_version}"
    else:
        table = _identifier(_folder(part.path), dialect)
        rows = f"{within}.{table} FOR VERSION AS OF {part.delta_version}"
    there = {field.name for field in _delta(part).schema().fields}
    columns = ", ".join(
        _identifier(name, dialect) if name in there else _null(name, dtype, dialect)
        for name, dtype in stored_columns(model).items()
    )
    return f"SELECT {columns} FROM {rows}{_where(part, dialect)}"  # noqa: S608 - quoted


def _of_files(model: Model, layer: Table, above: IntervalSet, part: Part) -> str | None:
    """Let DuckDB, which needs no extension so, read the files of a Delta table; None for no file.

    The log says which cell a file of one cell holds. Files that several cells share hold the column.
    """
    dialect, delta = Dialect.DUCKDB, _delta(part)
    alone = CELL_COLUMN in delta.metadata().partition_columns

    def answers(cell: Interval) -> bool:
        return cell not in above and (layer.cells is None or cell in layer.cells)

    chosen = [
        file.name
        for file in files_of(delta)
        if part.where == _EVERYTHING
        or not alone
        or answers(cell_of_text(model.cadence, file.first))
    ]
    if not chosen:
        return None
    folder = part.path.rstrip("/")
    listed = ",\n    ".join(_text(f"{folder}/{name}", dialect) for name in sorted(chosen))
    columns = ", ".join(_identifier(name, dialect) for name in stored_columns(model))
    # A file lacks the columns that were declared after it was written.
    return (
        f"SELECT {columns} FROM (\n"  # noqa: S608 - quoted
        f"  SELECT {_nulls(model, dialect)} WHERE FALSE\n"
        "  UNION ALL BY NAME\n"
        f"  SELECT * FROM read_parquet([\n    {listed}\n  ], union_by_name = TRUE, hive_partitioning = FALSE)\n"
        f"){'' if alone else _where(part, dialect)}"
    )


def _delta(part: Part) -> DeltaTable:
    from deltalake import DeltaTable  # noqa: PLC0415

    return DeltaTable(part.path, version=part.delta_version)


def _nulls(model: Model, dialect: Dialect) -> str:
    return ", ".join(_null(name, dtype, dialect) for name, dtype in stored_columns(model).items())


def _null(name: str, dtype: str, dialect: Dialect) -> str:
    from sqlglot import exp  # noqa: PLC0415

    kind = exp.DataType.build(dtype, dialect=Dialect.SPARK).sql(dialect)
    return f"CAST(NULL AS {kind}) AS {_identifier(name, dialect)}"


def _where(part: Part, dialect: Dialect) -> str:
    from sqlglot import parse_one  # noqa: PLC0415

    if part.where == _EVERYTHING:
        return ""
    return f" WHERE {parse_one(part.where, dialect=Dialect.SPARK).sql(dialect)}"


def _identifier(name: str, dialect: Dialect) -> str:
    from sqlglot import exp  # noqa: PLC0415

    return exp.to_identifier(name, quoted=True).sql(dialect)


def _text(text: str, dialect: Dialect) -> str:
    from sqlglot import exp  # noqa: PLC0415

    return exp.Literal.string(text).sql(dialect)


def _folder(path: str) -> str:
    return path.rstrip("/").rsplit("/", 1)[-1]
