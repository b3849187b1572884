"""The kinds of models: rewritten cell by cell, merged by key, or rebuilt as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from backfill_assets.errors import DeclarationError


@dataclass(frozen=True, slots=True)
class IncrementalByTimeRange:
    """Each cell is replaced as a whole by its computed rows.

    Attributes:
        time_column: the output column (DATE in the model's zone, or TIMESTAMP) that names the cell.
    """

    time_column: str


@dataclass(frozen=True, slots=True)
class IncrementalByUniqueKey:
    """Each cell is made equal to its computed rows by a merge that touches changed rows only.

    Attributes:
        time_column: the output column that names the cell of a row.
        latest_by: of input rows with one key, the one with the largest value here wins; None means
            duplicates in the input are a blocking error.
        rows_move: whether a key may move to another cell; that cell then belongs to the batch too. A row of which
            another cell holds a later version, by `latest_by`, does not move; of equal ones the later cell's wins.
    """

    time_column: str
    latest_by: str | None = None
    rows_move: bool = False


@dataclass(frozen=True, slots=True)
class Full:
    """The whole table is one cell and is rebuilt as one."""


Kind = IncrementalByTimeRange | IncrementalByUniqueKey | Full


@dataclass(frozen=True, slots=True)
class KeepsDeleted:
    """Rows are never deleted: a key that the source no longer has stays as it was (`none`)."""


@dataclass(frozen=True, slots=True)
class AbsentMeansDeleted:
    """A key that the computed cells no longer have is deleted from them."""


@dataclass(frozen=True, slots=True)
class SoftDelete:
    """A key that the computed cells no longer have stays, with `column` set to TRUE."""

    column: str


@dataclass(frozen=True, slots=True)
class Tombstone:
    """The source marks deletions: a computed row whose `column` is TRUE deletes its key."""

    column: str


Deletes = KeepsDeleted | AbsentMeansDeleted | SoftDelete | Tombstone


def deletes_of(declared: Deletes | str) -> Deletes:
    """Read the short forms that a model may use: ``"none"`` and ``"absent"``.

    Raises:
        DeclarationError: another word.
    """
    match declared:
        case "none":
            return KeepsDeleted()
        case "absent":
            return AbsentMeansDeleted()
        case str():
            raise DeclarationError(
                found=f"deletes={declared!r} is not known",
                do="use 'none', 'absent', SoftDelete(column) or Tombstone(column)",
            )
        case _:
            return declared
