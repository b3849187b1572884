"""Numbers that audits measure in each cell: rows, a total, distinct values, a percentile, the newest instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Context, Decimal, Inexact
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

EXACT = Context(prec=400, traps=[Inexact])
"""Arithmetic that is exact or raises; numbers have up to 38 digits, and their sums a few more."""


def added(numbers: Iterable[Decimal | None]) -> Decimal | None:
    """Add numbers exactly; None where one of them is not known.

    Python's own `sum` rounds to 28 digits.
    """
    total = Decimal(0)
    for number in numbers:
        if number is None:
            return None
        total = EXACT.add(total, number)
    return total


class Of(StrEnum):
    """What is measured in a cell."""

    ROWS = "rows"
    TOTAL = "total"
    DISTINCT = "distinct values"
    PERCENTILE = "percentile"
    NEWEST = "newest value"


@dataclass(frozen=True, slots=True)
class Number:
    """A number of each cell.

    Attributes:
        of: what is measured.
        column: of this column; empty for rows.
        share: of a percentile, the fraction of values at or below it.
    """

    of: Of
    column: str = ""
    share: float = 0.0

    @property
    def words(self) -> str:
        """Name it as messages do."""
        match self.of:
            case Of.ROWS:
                return "number of rows"
            case Of.TOTAL:
                return f"sum({self.column})"
            case Of.DISTINCT:
                return f"distinct values of {self.column}"
            case Of.PERCENTILE:
                return f"p{self.share * 100:g} of {self.column}"
            case Of.NEWEST:
                return f"newest value of {self.column}"

    @property
    def without_rows(self) -> str | None:
        """Its value in a cell without rows, as decimal text; None where it has none."""
        return None if self.of in {Of.PERCENTILE, Of.NEWEST} else "0"


@dataclass(frozen=True, slots=True)
class NumberFound:
    """A number of one cell, and those that it is compared with, as exact decimal text.

    Attributes:
        own: of the computed rows; None where it has no value.
        published: of the published rows of the same cell; None where none has a value.
        around: of the nearest cells before and after it that hold rows, those of the batch included.
    """

    own: str | None = None
    published: str | None = None
    around: tuple[str, ...] = field(default=())
