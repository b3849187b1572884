"""The session that a process shares: started on first use, and again once its Spark has died."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from backfill_assets.warehouse.spark.connect import hang_up, is_lost
from backfill_assets.warehouse.spark.driver import forget, is_dead, keeping_signals
from backfill_assets.warehouse.spark.session import start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from backfill_assets.warehouse.spark.session import SparkSettings


class SharedSession:
    """Call it for the session; batches do so from several threads at once."""

    def __init__(self, settings: SparkSettings) -> None:
        self._settings = settings
        self._session: SparkSession | None = None
        self._starting = Lock()

    @property
    def started(self) -> bool:
        """Whether it was started."""
        return self._session is not None

    def __call__(self) -> SparkSession:
        """Give the session.

        Raises:
            SparkUnreachableError: the server does not answer.
        """
        with self._starting:
            if self._session is not None and self._is_gone(self._session):
                self._session = None
            if self._session is None:
                with keeping_signals():
                    self._session = start_session(self._settings)
            return self._session

    def stop(self) -> None:
        """Stop it, if it was started."""
        with self._starting:
            if self._session is not None and not self._is_gone(self._session):
                hang_up(self._session)
            self._session = None

    def _is_gone(self, session: SparkSession) -> bool:
        """Whether Spark has died under a session; then its remains in this process are removed."""
        if self._settings.remote:
            return is_lost(session)
        if not is_dead(session):
            return False
        forget(session)
        return True
