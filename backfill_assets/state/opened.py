"""What every part of the store's facade stands on: a database, a clock, a lease, the data root."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.places import located, place_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from backfill_assets.state.database import Database


class OpenedState:
    """An open state database."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], datetime],
        lease: timedelta,
        data_root: str | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._lease = lease
        self._data_root = data_root

    def place(self, path: str) -> str:
        """Give what the state keeps of a table's path: see `snapshots.places`."""
        return place_of(path, self._data_root)

    def located(self, place: str) -> str:
        """Give the path, or the URI, of a place that the state keeps.

        Raises:
            RequestError: the state was opened without a data root.
        """
        return located(place, self._data_root)
