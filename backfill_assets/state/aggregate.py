"""The base of every aggregate of the state: a database, a clock, a lease, the data root.

An aggregate is one subject of the state: plans, batches, locks. Its class has what is read and
written, in one module with the SQL. **A method is one transaction.** Functions beside the class take a
connection: they are the steps of transactions, those of other aggregates too.

What says how long a holder has been silent is measured by the clock as it is within the transaction: else the
wait for the database would age a heartbeat, and one that was read before would be written over a newer one.

A method that only reads needs a database that can be read. One that writes says so in the type of
`self`: on a `StateReader`'s aggregate the type checker refuses it, and it fails when it runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, TypeVarTuple

from backfill_assets.snapshots.places import located, place_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime, timedelta

    from sqlalchemy import Connection, Row, Select

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Readable(Protocol):
    """A database, as far as it is read."""

    def ask(self, query: Select[*tuple[Any, ...]]) -> Sequence[Row[Any]]:
        """Read the rows of one query, which has one consistent picture of the state."""
        ...

    def read(self, work: Callable[[Connection, *Ts], T], *args: *Ts) -> T:
        """Run work that only reads, with these arguments, on one consistent picture of the state."""
        ...


D = TypeVar("D", bound=Readable)


class Aggregate(Generic[D]):
    """A part of an open state database."""

    def __init__(
        self,
        database: D,
        clock: Callable[[], datetime],
        lease: timedelta,
        data_root: str | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._lease = lease
        self._data_root = data_root

    def _rows(self, query: Select[*tuple[Any, ...]]) -> Sequence[Row[Any]]:
        """Read the rows of a query."""
        return self._database.ask(query)

    def _row(self, query: Select[*tuple[Any, ...]]) -> Row[Any] | None:
        """Read the first row of a query; None where it has none."""
        return next(iter(self._rows(query)), None)

    def place(self, path: str) -> str:
        """Give what the state keeps of a table's path: see `snapshots.places`."""
        return place_of(path, self._data_root)

    def located(self, place: str) -> str:
        """Give the path, or the URI, of a place that the state keeps.

        Raises:
            RequestError: the state was opened without a data root.
        """
        return located(place, self._data_root)
