from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.snapshots.failure import FailedStart, FailureKind
from backfill_assets_tests.state.building import NOON, Asked, add_model, days, fill
from backfill_assets_tests.state.publishing import cells

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


def test_what_no_database_keeps_in_a_text_is_kept_as_it_is_written(store: Store):
    """Spark's messages quote the values of rows."""
    add_model(store, "orders")
    opened = store.batches.open_batch(Asked().request)
    found = AuditResult(
        "known", Severity.BLOCKING, passed=False, found="a\0b", allowed="é", sample=("\0\udc80é",)
    )
    store.batches.fail_batch(
        opened.request.batch_id, error="The value 'a\0b\udc80'", audits=(found,), finished_at=NOON
    )
    failed = FailedStart("orders", cells((0, 1)), "no\0", FailureKind.CODE, "run-1", "ann", NOON)
    store.failed_starts.keep("prod", failed)

    assert store.batches.get(opened.request.batch_id).error == "The value 'a␀b\\udc80'"
    [row] = store.batches.audit_results(batch_id=opened.request.batch_id)
    assert (row.result.found, row.result.sample) == ("a␀b", ("\0\udc80é",))
    assert store.failed_starts.of_environment("prod")["orders"].error == "no␀"
