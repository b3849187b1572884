"""What an edit of a query can change: the row set, or only the values of some output columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

if TYPE_CHECKING:
    from backfill_assets.models.query import SqlQuery


@dataclass(frozen=True, slots=True)
class SqlChange:
    """What an edit can change.

    Attributes:
        rows: whether the row set may differ; then every column may.
        changed: outputs whose values may differ.
        added: outputs that are new.
        removed: outputs that are gone.
        moved: outputs that stand elsewhere.
        reordered: whether rows are sorted in another way, which changes none of them.
        why: in words.
    """

    rows: bool = False
    changed: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    moved: frozenset[str] = frozenset()
    reordered: bool = False
    why: tuple[str, ...] = ()

    @property
    def touched(self) -> frozenset[str]:
        """Outputs that are not as they were."""
        return self.changed | self.removed | self.moved

    @property
    def is_breaking(self) -> bool:
        """Whether anything but an addition happened."""
        return self.rows or self.reordered or bool(self.touched)


def sql_change(old: SqlQuery, new: SqlQuery) -> SqlChange:
    """Hold two queries against each other."""
    if old.normalised() == new.normalised():
        return SqlChange()
    return SqlChange(rows=True, why=("changes the query",))


def repeats_rows_of_star(query: SqlQuery) -> bool:
    """Whether a `*` stands where another column may make or merge rows."""
    tree = query.tree()
    distinct = any(select.args.get("distinct") for select in tree.find_all(exp.Select))
    sets = any(one.args.get("distinct") for one in tree.find_all(exp.SetOperation))
    return (distinct or sets) and tree.find(exp.Star) is not None
