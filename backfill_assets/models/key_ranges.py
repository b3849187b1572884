"""Key ranges: a table that is rebuilt as a whole can be computed one range of its key after the other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.models.column import canonical_type, quoted, sql_literal
from backfill_assets.models.declared_values import settle_lists

if TYPE_CHECKING:
    from collections.abc import Sequence

_WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """Ranges of a column by which the rows of one batch are computed and written, one after the other.

    Spark holds the rows of one range at a time. All ranges are one batch: audited together, published at once.
    Each of them runs the query, so it has to give the same rows every time.

    Attributes:
        column: of the unique key; whole numbers or texts.
        starts: where every range but the first begins, in rising order. The first has the rows below, and those
            without a value.

    Raises:
        DeclarationError: the starts do not rise, are of several types, or there are none.
    """

    column: str
    starts: Sequence[int | str]

    def __post_init__(self) -> None:
        of = f"key ranges of '{self.column}'"
        settle_lists(of, self, {"starts": (int | str, "whole numbers, or of texts")})
        alike = {type(start) for start in self.starts} in ({int}, {str})
        if not alike or any(start >= later for start, later in pairwise(self.starts)):  # type: ignore[operator]
            raise DeclarationError(
                found=f"{of}: found {self.starts!r:.60} as starts",
                expected="at least one whole number or text, rising, such as [1000, 2000]",
            )

    def are_of(self, dtype: str) -> bool:
        """Whether values of a Spark type are compared with the starts as they are."""
        if isinstance(self.starts[0], str):
            return canonical_type(dtype) == "string"
        return canonical_type(dtype) in _WHOLE_NUMBERS

    def conditions(self) -> tuple[str, ...]:
        """Write Spark SQL for each range: of every row exactly one is true."""
        name, starts = quoted(self.column), [sql_literal(start) for start in self.starts]
        between = (f"{name} >= {start} AND {name} < {end}" for start, end in pairwise(starts))
        return f"{name} < {starts[0]} OR {name} IS NULL", *between, f"{name} >= {starts[-1]}"
