"""What every part of the store's facade stands on: a database, a clock, a lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

    from backfill_assets.state.database import Database


class OpenedState:
    """An open state database."""

    def __init__(self, database: Database, clock: Callable[[], datetime], lease: timedelta) -> None:
        self._database = database
        self._clock = clock
        self._lease = lease
