from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.snapshots.failure import FailureKind
from backfill_assets_tests.state.building import NOON, Asked, add_model, days, fill

if TYPE_CHECKING:
    from backfill_assets.state.store import Store


def test_failed_batches_of_the_tables_that_are_asked_for_are_told_with_their_kind(store: Store):
    for model in ("orders", "items"):
        add_model(store, model)
    opened = store.batches.open_batch(Asked(start=2, end=4).request)
    store.batches.fail_batch(
        opened.request.batch_id,
        error="12 rows",
        audits=(),
        finished_at=NOON,
        failure=FailureKind.AUDIT,
    )
    fill(store, Asked(start=0, end=2))
    other = store.batches.open_batch(Asked(model="items").request)
    store.batches.fail_batch(other.request.batch_id, error="no", audits=(), finished_at=NOON)

    [failed] = store.batches.failed_batches(["orders__v1"])

    assert (failed.model, failed.cells.span(), failed.kind) == (
        "orders",
        days(2, 4),
        FailureKind.AUDIT,
    )
    assert (failed.built_at, failed.ended, failed.run_id) == (opened.built_at, NOON, "run-1")
    assert len(store.batches.failed_batches(["orders__v1", "items__v1"])) == 2
