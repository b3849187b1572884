"""A SQL query of a model: parsed once, bound with typed literals, never spliced as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.simplify import simplify

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

PARAMETERS = ("start_ds", "end_ds", "start_ts", "end_ts")


class UnparsableSqlError(BackfillAssetsError):
    """The text is not one Spark SELECT."""

    def __init__(self, *, found: str, sql: str) -> None:
        self.found = found
        head = sql.strip().splitlines()[0][:80] if sql.strip() else "(empty)"
        super().__init__(
            f"the query starting '{head}' is not one Spark SQL SELECT: {found}; correct the SQL"
        )


class UnknownParameterError(BackfillAssetsError):
    """A named parameter is not one that we bind."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"the query has the parameter :{name}; known are "
            f"{', '.join(':' + known for known in PARAMETERS)}"
        )


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A SELECT in Spark's dialect over upstreams by name, with `PARAMETERS` for the interval.

    Attributes:
        sql: the text as its author wrote it.
    """

    sql: str

    def __post_init__(self) -> None:
        unknown = {p.name for p in self.tree().find_all(exp.Placeholder)} - {*PARAMETERS}
        if unknown:
            raise UnknownParameterError(min(unknown))

    def tree(self) -> exp.Query:
        """Parse to a fresh syntax tree.

        Raises:
            UnparsableSqlError: it is not exactly one SELECT (or set operation).
        """
        try:
            statements = sqlglot.parse(self.sql, dialect="spark")
        except SqlglotError as error:
            raise UnparsableSqlError(found=str(error).splitlines()[0], sql=self.sql) from error
        found = [one for one in statements if one and not isinstance(one, exp.Semicolon)]
        if len(found) != 1 or not isinstance(found[0], exp.Query):
            kinds = ", ".join(type(one).__name__ for one in found) or "nothing"
            raise UnparsableSqlError(found=f"found {kinds}", sql=self.sql)
        return found[0]

    def normalised(self) -> str:
        """Give the text that means the same without formatting, comments and tautologies."""
        return simplify(self.tree(), dialect="spark").sql(dialect="spark", comments=False)

    def tables(self) -> frozenset[str]:
        """Name the upstreams that it reads, CTEs left out."""
        tree = self.tree()
        defined = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
        named = {
            table_name(table)
            for table in tree.find_all(exp.Table)
            if isinstance(table.this, exp.Identifier)  # else a function such as range(10)
        }
        return frozenset(named - defined)

    def bind(self, parameters: Mapping[str, exp.Expr], views: Mapping[str, str]) -> str:
        """Write Spark SQL with the interval as typed literals and upstreams as views.

        Args:
            parameters: per name in `PARAMETERS`, the literal.
            views: per upstream name, the name of the (quoted) view to read instead.
        """
        tree = self.tree()
        for placeholder in list(tree.find_all(exp.Placeholder)):
            if placeholder.name in parameters:
                placeholder.replace(parameters[placeholder.name].copy())
        for column in tree.find_all(exp.Column):
            if f"{column.db}.{column.table}".lower() in views:
                column.set(
                    "db", None
                )  # a view has one name, and a field of a struct keeps its dots
        for table in list(tree.find_all(exp.Table)):
            if table_name(table) in views:
                _read_instead(table, views[table_name(table)])
        return tree.sql(dialect="spark", comments=False)


def _read_instead(table: exp.Table, view: str) -> None:
    """Put a view in a table's place; samples, pivots, aliases and joins stay as they are."""
    if not table.alias:
        named = exp.to_identifier(table.name, quoted=True)
        table.set("alias", exp.TableAlias(this=named))
    table.set("this", exp.to_identifier(view, quoted=True))
    table.set("db", None)
    table.set("catalog", None)


def parameters_of(
    start: datetime, end: datetime, local_start: datetime, local_end: datetime
) -> dict[str, exp.Expr]:
    """Build the typed literals of one interval.

    Args:
        start: first instant, UTC.
        end: first instant after it, UTC.
        local_start: `start` in the model's zone; its date is `:start_ds`.
        local_end: `end` in the model's zone; its date is `:end_ds` (exclusive).
    """
    return {
        "start_ds": _typed(local_start.date().isoformat(), "DATE"),
        "end_ds": _typed(local_end.date().isoformat(), "DATE"),
        "start_ts": _typed(start.strftime("%Y-%m-%d %H:%M:%S+00:00"), "TIMESTAMP"),
        "end_ts": _typed(end.strftime("%Y-%m-%d %H:%M:%S+00:00"), "TIMESTAMP"),
    }


def _typed(text: str, sql_type: str) -> exp.Expr:
    return exp.cast(exp.Literal.string(text), sql_type, dialect="spark")


def table_name(table: exp.Table) -> str:
    """Name what a query reads as models and sources are named: two lower-case parts."""
    parts = [part.name for part in table.parts]
    return ".".join(parts).lower()
