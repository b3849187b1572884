"""The value that describes what an edit of a query can change; each inner query has its own."""

from __future__ import annotations

from dataclasses import dataclass, replace

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SqlEdit:
    """What an edit can change.

    Attributes:
        rows: whether the row set may differ; then every column may.
        changed: outputs whose values may differ.
        added: outputs that are new.
        removed: outputs that are gone.
        moved: outputs that stand elsewhere.
        spread: whether a query around may read it under any name: a `*` came or went, or an output without
            an alias went or changed.
        reordered: whether rows are sorted in another way, which changes none of them.
        shuffled: whether Spark may take the rows in another order, which shows where the order
            of ties decides.
        why: in words.
    """

    rows: bool = False
    changed: frozenset[str] = _NONE
    added: frozenset[str] = _NONE
    removed: frozenset[str] = _NONE
    moved: frozenset[str] = _NONE
    spread: bool = False
    reordered: bool = False
    shuffled: bool = False
    why: tuple[str, ...] = ()

    @property
    def touched(self) -> frozenset[str]:
        """Outputs that are not as they were."""
        return self.changed | self.removed | self.moved

    @property
    def is_breaking(self) -> bool:
        """Whether anything but an addition happened."""
        return self.rows or self.reordered or bool(self.touched)

    @property
    def shows(self) -> bool:
        """Whether a query around this one could see the edit."""
        return self.rows or bool(self.touched or self.added)

    def lowered(self) -> SqlEdit:
        """Spell every name as comparable trees do: in lower case."""
        sets = (self.changed, self.added, self.removed, self.moved)
        changed, added, removed, moved = (frozenset(map(str.lower, names)) for names in sets)
        return replace(self, changed=changed, added=added, removed=removed, moved=moved)


NO_EDIT = SqlEdit()


def of_rows(why: str) -> SqlEdit:
    """Give the edit that may change the row set."""
    return SqlEdit(rows=True, why=(why,))
