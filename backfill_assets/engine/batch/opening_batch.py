"""Open a batch, waiting for cells that another run holds, and for a slot.

A batch that waits holds nothing: no claim, no lock, no slot. Those that it waits for never wait for a
slot themselves, so that waiting comes to an end when theirs does.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING

from tenacity import stop_when_event_set
from tenacity.stop import stop_base

from backfill_assets.engine.project.events import Delayed
from backfill_assets.engine.project.waiting import until_free
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.limits import NoSlotError

if TYPE_CHECKING:
    import threading
    from collections.abc import Generator

    from tenacity import RetryCallState

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.snapshots.batch import BatchRequest, OpenBatch


def open_when_free(run: RunContext, request: BatchRequest) -> Generator[Delayed, None, OpenBatch]:
    """Claim the cells and pin the inputs, and tell what is waited for, each thing once.

    Cells and slots of a killed run come free after its lease. A slot is waited for as long as live
    batches hold it.

    Raises:
        CellsClaimedError: a live run holds them for longer than a lease; it says which.
        CellsReadyError: another run has filled them meanwhile.
        PlanPausedOrStoppedError: its plan is paused or stopped.
        UpstreamNotReadyError: something that the batch reads is not ready at its pin.
        VersionMovedError: the environment points at another version by now.
        NoSlotError: the run was interrupted while it waited.
    """
    stop = _Wait(run.store.lease_seconds * 1.5, run.interrupted)
    last_reason = ""
    for attempt in until_free((CellsClaimedError, NoSlotError), stop, run.interrupted):
        with attempt:
            resources = run.resources(request.model)
            return run.store.batches.open_batch(replace(request, resources=resources))
        why = _waited_for(attempt.retry_state)
        if why and why != last_reason:
            last_reason = why
            yield Delayed(request.model, request.stretches, why)
    raise AssertionError  # tenacity raises before it runs out of attempts


@dataclass
class _Wait(stop_base):
    """Ends the wait for claimed cells after a while; that for a slot when the run is interrupted."""

    seconds: float
    interrupted: threading.Event
    claimed_since: float | None = field(default=None, init=False)

    def __call__(self, state: RetryCallState) -> bool:
        if stop_when_event_set(self.interrupted)(state):
            return True
        if not isinstance(_error(state), CellsClaimedError):
            self.claimed_since = None
            return False
        self.claimed_since = self.claimed_since or monotonic()
        return monotonic() - self.claimed_since >= self.seconds


def _waited_for(state: RetryCallState) -> str:
    """Say what a batch waits for, the same words as long as it is the same thing; empty for nothing."""
    error = _error(state)
    if isinstance(error, NoSlotError):
        return error.words
    if isinstance(error, CellsClaimedError):
        return f"cells that run {error.run_id} is building (batch {error.batch_id})"
    return ""


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome else None
