"""The declaration of an upstream: what a model reads, how far back, and what its change reopens."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from backfill_assets.errors import DeclarationError
from backfill_assets.models.declared_values import require_values, settle_words

_CELLS = "a number of cells"


@dataclass(frozen=True, slots=True)
class OwnCells:
    """A lookback counted in the reading model's own cells (a month over days: `own_cells(1)`)."""

    count: int

    def __post_init__(self) -> None:
        require_values("own_cells", self, {"count": (int, _CELLS)})


def own_cells(count: int) -> OwnCells:
    """Count the lookback in the model's own cells."""
    return OwnCells(count)


class Reopens(StrEnum):
    """The cells of a reader that a change of a `Full` upstream reopens."""

    NEVER = "never"
    LATE_WINDOW = "late_window"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Upstream:
    """One thing that a model reads.

    Attributes:
        name: of a model or source.
        lookback: how many earlier upstream cells a cell reads as well, or `own_cells(n)`.
        time_column: the column on which the query is bounded, of an upstream that is read as a whole. One
            that is cut into cells is bounded on the column that cuts it: None.
        reopens: for a `Full` upstream, which cells its change reopens: a `Reopens`, or its word.
    """

    name: str
    lookback: int | OwnCells = 0
    time_column: str | None = None
    reopens: Reopens = Reopens.LATE_WINDOW

    def __post_init__(self) -> None:
        require_values("an upstream", self, {"name": (str, "the name of a model or source")})
        require_values(f"upstream '{self.name}'", self, {"lookback": (int | OwnCells, _CELLS)})
        if self.reopens in tuple(Reopens):  # another word may be stored; `build_graph` refuses it
            settle_words(f"upstream '{self.name}'", self, {"reopens": Reopens})
        if self.cells_back < 0:
            raise DeclarationError(
                found=f"upstream '{self.name}' declares lookback={self.cells_back}",
                do="a lookback counts earlier cells and is zero or more",
            )

    @property
    def cells_back(self) -> int:
        """How many earlier cells the lookback is, whichever cells it counts."""
        return self.lookback.count if isinstance(self.lookback, OwnCells) else self.lookback
