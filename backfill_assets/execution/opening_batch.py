"""Open a batch, waiting a while for cells that another run holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from backfill_assets.state.claims import CellsClaimedError

if TYPE_CHECKING:
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.snapshots.batch import BatchRequest, OpenBatch


def open_when_free(run: RunContext, request: BatchRequest) -> OpenBatch:
    """Claim the cells and pin the inputs; cells of a killed run come free after its lease.

    Raises:
        CellsClaimedError: a live run holds them for longer than a lease; it says which.
        CellsReadyError: another run has filled them meanwhile.
        UpstreamNotReadyError: something that the batch reads is not ready at its pin.
        VersionMovedError: the environment points at another version by now.
    """
    patience = Retrying(
        retry=retry_if_exception_type(CellsClaimedError),
        wait=wait_fixed(1.0),
        stop=stop_after_delay(run.store.lease_seconds * 1.5),
        reraise=True,
    )
    return patience(run.store.open_batch, request)
