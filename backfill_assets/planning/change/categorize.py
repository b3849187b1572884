"""Derive the category of a changed declaration: its effect on the history that is published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.planning.change.declared_change import declared_changes, described_changes
from backfill_assets.planning.plan.request import Category

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.declared_change import DeclaredChange


@dataclass(frozen=True, slots=True)
class DeclarationDifference:
    """How one declaration of a model differs from another.

    Attributes:
        category: breaking, non-breaking or metadata; forward-only is for a person to decide.
        why: in words.
        rows: whether the row set may differ.
        columns: output columns whose values may differ, or that are new or gone; None for all.
        unproved: whether it is breaking only because no lesser category is proved; a person may decide.
    """

    category: Category
    why: str
    rows: bool
    columns: frozenset[str] | None
    unproved: bool = False


def difference(old: Model, new: Model) -> DeclarationDifference:
    """Compare two declarations of one model.

    Only an additive change is non-breaking: it adds columns, and the row set and other columns can't
    differ. Every change without such a proof is breaking.
    """
    changes = declared_changes(old, new)
    if not changes:
        return DeclarationDifference(
            Category.METADATA, _words(old, new), rows=False, columns=frozenset()
        )
    additive = all(change.additive for change in changes)
    why = "; ".join(dict.fromkeys(part for change in changes for part in change.why.split("; ")))
    return DeclarationDifference(
        Category.NON_BREAKING if additive else Category.BREAKING,
        f"{why}, and nothing else" if additive else why,
        rows=any(change.rows for change in changes),
        columns=_columns(changes),
        unproved=all(change.unproved for change in changes),
    )


def both(one: DeclarationDifference, other: DeclarationDifference) -> DeclarationDifference:
    """Combine two differences."""
    everything = one.columns is None or other.columns is None
    return DeclarationDifference(
        one.category if one.category is Category.BREAKING else other.category,
        one.why if other.category is not Category.BREAKING else f"{one.why}; {other.why}",
        rows=one.rows or other.rows,
        columns=None
        if everything
        else (one.columns or frozenset()) | (other.columns or frozenset()),
    )


def affected(difference: DeclarationDifference, reads: frozenset[str] | None) -> bool:
    """Whether a reader of these columns would see the difference.

    Args:
        difference: of the upstream.
        reads: the columns that the reader's loaded query names (lineage); None for one that reads
            everything, or whose columns can't be told.
    """
    if difference.category is Category.METADATA:
        return False
    if difference.rows or difference.columns is None or reads is None:
        return True
    return bool(difference.columns & reads)


def _columns(changes: Sequence[DeclaredChange]) -> frozenset[str] | None:
    columns: frozenset[str] = frozenset()
    for change in changes:
        if change.columns is None:
            return None
        columns |= change.columns
    return columns


def _words(old: Model, new: Model) -> str:
    words = described_changes(old, new)
    if words:
        return f"only {', '.join(words)}"
    return "the same rows and values, written differently"
