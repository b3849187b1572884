"""A model's SQL query: the author's text, with parameters and upstreams to be replaced."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from backfill_assets.errors import DeclarationError
from backfill_assets.models.sql.spark_tokens import tokens_of
from backfill_assets.models.sql.sql_analysis import lossless_tree
from backfill_assets.models.sql.sql_binding import (
    edited,
    edits_of_names,
    not_one_query,
    require_in_scope,
)
from backfill_assets.models.sql.sql_names import PARAMETERS, cte_names, names_of, parameters_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from backfill_assets.models.sql.spark_tokens import Token
    from backfill_assets.models.sql.sql_binding import Edit


def _unparsable_sql(*, found: str, sql: str) -> DeclarationError:
    head = sql.strip().splitlines()[0][:80] if sql.strip() else "(empty)"
    return DeclarationError(
        found=f"the query starting '{head}' is not one Spark SQL SELECT: {found}",
        do="correct the SQL",
    )


@dataclass(frozen=True, slots=True)
class SqlQuery:
    """A query in Spark's dialect over upstreams by name, with `PARAMETERS` for the interval.

    Spark runs its text: parameters and names of upstreams are replaced in place, and
    every other character reaches Spark as it was written.

    Attributes:
        sql: the text as its author wrote it.
    """

    sql: str

    def __post_init__(self) -> None:
        tokens = self.tokens()
        require_one_query(self.sql, tokens)
        unknown = {tokens[at + 1].name for at in self._colons()} - {*PARAMETERS}
        if unknown:
            raise DeclarationError(
                found=f"the query has the parameter :{min(unknown)}",
                do=f"known are {', '.join(':' + name for name in PARAMETERS)}",
            )

    def tokens(self) -> tuple[Token, ...]:
        """Cut the text into tokens; white space and comments are left out, hints are not.

        Raises:
            UnreadableSqlError: something is no token of Spark SQL, or is never closed.
        """
        return tokens_of(self.sql)

    def analysis(self) -> exp.Query | None:
        """Give a new syntax tree for lineage and categories; None where no lossless one exists.

        Spark runs many texts that are not analysed here; the columns that these read are unknown.
        """
        return lossless_tree(self.sql)

    def output_names(self) -> tuple[str, ...] | None:
        """Name the columns that it gives, as its text spells them; None where it does not name each."""
        tree = self.analysis()
        selects = [] if tree is None else tree.selects
        if not all(_names_one_column(each) for each in selects):
            return None
        return tuple(each.alias_or_name for each in selects) or None

    def tables(self) -> frozenset[str]:
        """Name the tables that it reads, CTEs left out."""
        tokens = self.tokens()
        named = {name.text for name in names_of(tokens) if name.role in ("table", "argument")}
        return frozenset(named - cte_names(tokens))

    def parameters(self) -> frozenset[str]:
        """Name the parameters that it has."""
        tokens = self.tokens()
        return frozenset(tokens[at + 1].name for at in self._colons())

    def bind(self, parameters: Mapping[str, exp.Expr], views: Mapping[str, str]) -> str:
        """Replace parameters by typed literals and upstreams by views; leave all else alone.

        Args:
            parameters: per name in `PARAMETERS`, the literal.
            views: per upstream name, the name of the view to read instead.

        Raises:
            DeclarationError: a name may be an upstream's or a field's.
        """
        tokens = self.tokens()
        edits: list[Edit] = []
        for at in self._colons():
            literal = parameters.get(tokens[at + 1].name)
            if literal is not None:
                written = literal.sql(dialect="spark")
                edits += [(tokens[at], written), (tokens[at + 1], "")]
        edits += edits_of_names(self.sql, tokens, views)
        return edited(self.sql, edits)

    def require_placeable(self, columns: frozenset[str]) -> None:
        """Refuse a new text that can't be bound safely; a stored text is not checked and runs as before.

        Args:
            columns: of all that it reads, in small letters.

        Raises:
            DeclarationError: a name may be an upstream's or a field's.
        """
        self.bind({}, {name: name for name in self.tables()})
        require_in_scope(self.sql, self.tokens(), columns)

    def _colons(self) -> list[int]:
        return parameters_in(self.sql, self.tokens())


def _names_one_column(projection: exp.Expr) -> bool:
    return isinstance(projection, (exp.Alias, exp.Column)) and not projection.is_star


def require_one_query(sql: str, tokens: Sequence[Token]) -> None:
    """Refuse a text that is not one query, by its tokens.

    Raises:
        DeclarationError: it is empty, two statements, or a statement of another kind.
    """
    other = not_one_query(tokens)
    if other:
        raise _unparsable_sql(found=other, sql=sql)


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
    """Name a table of a query in the form of models and sources: two lower-case parts."""
    parts = [part.name for part in table.parts]
    return ".".join(parts).lower()
