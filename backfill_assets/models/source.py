"""The declaration of a source: a table that another system writes; observed, never computed."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.cadence import Cadence
from backfill_assets.models.column import (
    Column,
    SchemaModel,
    columns_of,
)
from backfill_assets.models.declared_values import FLAG, require_values, settle_words
from backfill_assets.models.names import check_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class WhenEmpty(StrEnum):
    """The meaning of a required cell that has no source row."""

    ACCEPT = "accept"
    WAIT = "wait"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class TimeColumns:
    """Which column carries which time; a column may carry several."""

    event: str | None = None
    ingested: str | None = None
    updated: str | None = None
    effective: str | None = None
    created: str | None = None

    def named(self) -> Iterator[tuple[str, str]]:
        """Give each time that is declared, with its column."""
        times = ((field.name, getattr(self, field.name)) for field in fields(self))
        return ((role, column) for role, column in times if column is not None)


_VALUES = {
    "path": (str, "a URI, or a path below the data folder"),
    "cadence": (Cadence, "a grid, such as Daily(start='2024-01-01')"),
    "times": (TimeColumns, "TimeColumns(event=...)"),
    "observed": FLAG,
    "owner": (str, "'team:name' or an e-mail address"),
    "description": (str, "words"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A Delta table that another system writes.

    Attributes:
        name: two-part, ``subject.table``.
        path: where the table lies: a URI, or a path below the data folder.
        cadence: the grid that its cells are observed on; its start is the earliest data. `Whole`
            for a table that is read as a whole.
        columns: the columns that this project relies on; a table without them has drifted.
        times: event time is what cells are cut by; ingestion time is when a row arrived.
        when_empty: what a required cell without rows means: a `WhenEmpty`, or its word.
        observed: whether later changes of its cells can be seen. Of a source where they can't,
            the last cells of a reader's late window are planned again with every new one.
        owner: who answers for it.
    """

    name: str
    path: str
    cadence: Cadence
    columns: Sequence[Column] | type[SchemaModel]
    times: TimeColumns = field(default_factory=TimeColumns)
    when_empty: WhenEmpty = WhenEmpty.ACCEPT
    observed: bool = True
    owner: str = ""
    description: str = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        require_values(f"source '{self.name}'", self, _VALUES)
        settle_words(f"source '{self.name}'", self, {"when_empty": WhenEmpty})
        object.__setattr__(self, "columns", columns_of(self.columns))
        names = [column.name for column in self.schema]
        if self.time_column is not None and self.time_column not in names:
            raise not_declared(self, "event", self.time_column)
        for column in self.schema:
            if column.tolerance is not None:
                raise DeclarationError(
                    found=f"column '{self.name}.{column.name}': found a tolerance on a column of a "
                    "source",
                    expected="it on a column of a model: every change of a source counts",
                )

    @property
    def schema(self) -> tuple[Column, ...]:
        """The columns that this project relies on."""
        return self.columns  # type: ignore[return-value]

    @property
    def time_column(self) -> str | None:
        """The column that cells are cut by: event time."""
        return self.times.event


def not_declared(source: Source, role: str, column: str) -> DeclarationError:
    """Say that a time of a source lies in a column that it does not declare."""
    columns = ", ".join(column.name for column in source.schema)
    return DeclarationError(
        found=f"source '{source.name}' names '{column}' as its {role} time, but declares the columns {columns}",
        do="declare the column or correct the name",
    )
