"""Batches in flight, and giving them up: only before their commit turn, never after it has come.

Until then a batch has changed nothing that counts, so its Spark jobs may be cancelled at any instant.
From the moment that it holds its table, reconciled, it comes to its end: commit and record are one.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import timedelta

_log = logging.getLogger(__name__)


class BatchTimeoutError(BackfillAssetsError):
    """A batch took longer than it may."""

    def __init__(self, model: str, seconds: float) -> None:
        self.model, self.seconds = model, seconds
        super().__init__(
            f"the batch of '{model}' was not computed and audited within {seconds:g} s, so its Spark "
            "jobs were cancelled and nothing was committed; make batches smaller (batch_size), or "
            "allow more (batch_timeout of the model, BACKFILL_BATCH_TIMEOUT)"
        )


class BatchTooOldError(BackfillAssetsError):
    """A batch has computed for so long that its files may be collected before its commit."""

    def __init__(self, batch_id: str, grace: timedelta) -> None:
        self.batch_id = batch_id
        super().__init__(
            f"batch {batch_id} began more than {grace.total_seconds() / 3600:g} hours ago, so "
            "`backfill gc` may be deleting its uncommitted files. Nothing was committed; "
            "make batches smaller (batch_size), and run again"
        )


class RunCancelledError(BackfillAssetsError):
    """The run of a batch was cancelled before the batch's commit."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(
            f"run {run_id} was cancelled before the commit of this batch; nothing of it was "
            "committed, its cells are free. Run again for what is missing"
        )


class PlanCancelledError(BackfillAssetsError):
    """The plan of a batch was stopped at once, before the batch's commit."""

    def __init__(self, plan_id: str) -> None:
        self.plan_id = plan_id
        super().__init__(
            f"plan {plan_id} was stopped at once, before the commit of this batch; nothing of it "
            f"was committed, its cells are free. `backfill resume {plan_id}`, then `backfill apply {plan_id}`, "
            "builds them"
        )


class RunningBatch:
    """One batch on its way."""

    def __init__(self, model: str, interrupt: Callable[[], None], seconds: float | None) -> None:
        self._model, self._interrupt, self._seconds = model, interrupt, seconds
        self._since = monotonic()
        self._turn = threading.Lock()
        self._commits = False
        self._why: BackfillAssetsError | None = None

    @property
    def why(self) -> BackfillAssetsError | None:
        """Why the batch is given up; None as long as it is not."""
        return self._why

    def cancel(self, why: BackfillAssetsError) -> None:
        """Give the batch up, unless its commit turn has come."""
        with self._turn:
            if not self._commits:
                self._why = self._why or why

    def check(self) -> None:
        """Raise the reason for which the batch is given up, if there is one."""
        if self._why is not None:
            raise self._why

    def commits(self) -> None:
        """Note that the commit turn has come: from here on nothing cancels the batch."""
        with self._turn:
            self.check()
            self._commits = True

    def look(self) -> None:
        """Cancel the batch when its time is over, and interrupt it again as long as it goes on."""
        if self._seconds is not None and monotonic() - self._since > self._seconds:
            self.cancel(BatchTimeoutError(self._model, self._seconds))
        if self._why is None:
            return
        try:
            # Again and again: between two jobs there is nothing to interrupt, then the next begins.
            self._interrupt()
        except Exception as error:  # noqa: BLE001 - a Spark that is gone has nothing to interrupt
            _log.debug("a batch of %s can't be interrupted: %s", self._model, error)


class RunningBatches:
    """The batches of a run that are in flight."""

    def __init__(self) -> None:
        self._flights: set[RunningBatch] = set()
        self._changing = threading.Lock()
        self._why: BackfillAssetsError | None = None

    @contextmanager
    def begun(
        self, model: str, interrupt: Callable[[], None], seconds: float | None
    ) -> Iterator[RunningBatch]:
        """Let a batch be given up while the context is open; then that is what is raised.

        Args:
            model: whose batch it is.
            interrupt: cancels what Spark does for it.
            seconds: how long it may take until its commit turn; None for as long as it likes.
        """
        flight = RunningBatch(model, interrupt, seconds)
        with self._changing:
            self._flights.add(flight)
            if self._why is not None:
                flight.cancel(self._why)
        try:
            flight.check()
            yield flight
        except Exception as error:
            if flight.why is None or error is flight.why:
                raise
            raise flight.why from error
        finally:
            with self._changing:
                self._flights.discard(flight)

    def cancel(self, why: BackfillAssetsError) -> None:
        """Give up every batch whose commit turn has not come, and all that would begin."""
        with self._changing:
            self._why = self._why or why
            flights = tuple(self._flights)
        for flight in flights:
            flight.cancel(why)
        self.look()

    def look(self) -> None:
        """Look after every batch in flight."""
        with self._changing:
            flights = tuple(self._flights)
        for flight in flights:
            flight.look()
