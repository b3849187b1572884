"""The sources of a SELECT with the edits in them, and which of its expressions read an edit."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import exp

from backfill_assets.models.sql.query import table_name
from backfill_assets.planning.change.sql_edit import NO_EDIT, SqlEdit
from backfill_assets.planning.change.sql_tree import parts_of

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Scope:
    """The sources of one SELECT.

    Attributes:
        sources: by alias, the edits in it.
        tables: the edits in CTEs and upstreams, for the queries inside expressions.
    """

    sources: Mapping[str, SqlEdit]
    tables: Mapping[str, SqlEdit]

    @property
    def edited(self) -> bool:
        """Whether any source has an edit that could be seen."""
        return any(source.shows for source in self.sources.values())

    @property
    def shuffled(self) -> bool:
        """Whether rows may come from a source in another order."""
        return any(source.shuffled for source in self.sources.values())

    def sees(self, node: exp.Expr | None, outputs: SqlEdit = NO_EDIT) -> bool:
        """Whether an expression, which both queries have, may give something else.

        Args:
            node: the expression.
            outputs: the edit of the same SELECT's outputs, which an alias may name.
        """
        if node is None:
            return False
        return (
            any(self._column_sees(column, outputs) for column in node.find_all(exp.Column))
            or self._star_sees(node)
            or any(self._query_sees(table) for table in node.find_all(exp.Table))
        )

    def expands(self, star: exp.Expr, outputs: SqlEdit) -> bool:
        """Whether a star stands for the fields of a struct that may differ: their names are not known."""
        return (
            isinstance(star, exp.Column)
            and star.table not in self.sources
            and self._column_sees(star, outputs)
        )

    def _column_sees(self, column: exp.Column, outputs: SqlEdit) -> bool:
        """A name whose beginning is a source's may be a struct's field all the same, but not of a new struct."""
        parts = [part.lower() for part in parts_of(column)]
        pairs = [(part, then) for part, then in pairwise(parts) if part in self.sources]
        if any(
            then in self.sources[part].touched | self.sources[part].added for part, then in pairs
        ):
            return True
        edits = (*self.sources.values(), outputs)
        return any(
            parts[0] in (edit.touched if pairs else edit.touched | edit.added) for edit in edits
        )

    def _star_sees(self, node: exp.Expr) -> bool:
        """COUNT(*) looks at rows alone; any other star looks at every column."""
        stars = [star for star in node.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
        return bool(stars) and (self.edited or any(table.shows for table in self.tables.values()))

    def _query_sees(self, table: exp.Table) -> bool:
        """A query inside an expression: any column that is not merely new counts as read."""
        edit = self.tables.get(table_name(table), NO_EDIT)
        if edit.rows or edit.touched or edit.shuffled:
            return True
        query = table.find_ancestor(exp.Select)
        return bool(edit.added) and (query is None or _may_name(query, edit.added))


def _may_name(query: exp.Expr, columns: frozenset[str]) -> bool:
    """Whether a query names one of these columns, or as any of its sources' by a pivot or a natural join."""
    unnamed = any(join.method.upper() == "NATURAL" for join in query.find_all(exp.Join))
    names = (column.parts[0].name.lower() for column in query.find_all(exp.Column))
    return unnamed or query.find(exp.Pivot) is not None or any(name in columns for name in names)
