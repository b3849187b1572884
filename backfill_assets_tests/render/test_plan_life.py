from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.render.plan_life import (
    Progress,
    audit_lines,
    blocks,
    next_commands,
    progress,
    status_text,
)
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.slots import InFlightBatch
from backfill_assets.snapshots.stored_plan import PlanStatus, StoredPlan
from backfill_assets.state.batch_rows import BatchRow
from backfill_assets_tests.render.plans import DAYS, NAMING, NOON, PERFORMANCE, ROI, added_columns


def a_batch(first: str, last: str, status: str, **given: Any) -> BatchRow:  # noqa: ANN401
    fields = dict.fromkeys(BatchRow.__dataclass_fields__)
    interval = Interval(DAYS.cell(first).start, DAYS.cell(last).end)
    said = {
        "plan_id": "p1a2b3c4d5",
        "model": PERFORMANCE,
        "stretches": IntervalSet.of([interval]),
        "status": status,
        "rows": 10 if status == "committed" else None,
    }
    return BatchRow(**{**fields, **said, **given})


def at_work(row: BatchRow) -> InFlightBatch:
    """A batch that holds its cells."""
    return InFlightBatch(
        row.batch_id, row.model, "v", row.plan_id, "run", row.stretches, since=NOON
    )


def test_cells_count_as_done_when_a_batch_of_the_plan_has_committed_them():
    batches = [
        a_batch("2024-01-01", "2024-03-31", "committed"),
        a_batch("2024-04-01", "2024-05-31", "running", batch_id="b2"),
    ]

    first, second = progress(added_columns(), NAMING, batches, [at_work(batches[1])])

    assert first == Progress(
        PERFORMANCE, planned=152, certain=152, done=91, batches=1, running=1, failed=0, rows=10
    )
    assert (second.model, second.planned, second.certain, second.done) == (ROI, 152, 2, 0)


def test_a_failure_counts_until_a_later_batch_has_done_it():
    failed = a_batch("2024-01-01", "2024-01-31", "failed")
    done = a_batch("2024-01-01", "2024-01-31", "committed")

    assert progress(added_columns(), NAMING, [failed], [])[0].failed == 1
    assert progress(added_columns(), NAMING, [done, failed], [])[0].failed == 0


def test_stretches_that_failed_together_and_then_one_by_itself_are_one_failure():
    first, second = (DAYS.cell(on) for on in ("2024-01-01", "2024-01-03"))
    together = a_batch(
        "2024-01-01", "2024-01-03", "failed", stretches=IntervalSet.of([first, second])
    )
    alone = a_batch("2024-01-03", "2024-01-03", "failed")
    done = a_batch("2024-01-01", "2024-01-01", "committed")

    assert progress(added_columns(), NAMING, [together], [])[0].failed == 1
    assert progress(added_columns(), NAMING, [together, alone, done], [])[0].failed == 1


def test_a_batch_of_a_dead_process_is_not_at_work():
    dead = a_batch("2024-01-01", "2024-01-31", "running", batch_id="b1")

    assert progress(added_columns(), NAMING, [dead], [at_work(dead)])[0].running == 1
    assert progress(added_columns(), NAMING, [dead], [])[0].running == 0


def test_what_somebody_cancelled_has_not_failed():
    cancelled = a_batch("2024-01-01", "2024-01-31", "failed", failure=FailureKind.CANCELLED)

    assert progress(added_columns(), NAMING, [cancelled], [])[0].failed == 0


def kept(status: PlanStatus) -> StoredPlan:
    return StoredPlan(
        plan_id="p1",
        environment="prod",
        status=status,
        content="{}",
        content_hash="",
        created_at=NOON,
        created_by="ada",
        reason="",
        expires_at=NOON + timedelta(days=7),
    )


def test_only_a_proposed_plan_expires():
    later = NOON + timedelta(days=7)

    assert status_text(kept(PlanStatus.PROPOSED), NOON) == "proposed"
    assert status_text(kept(PlanStatus.PROPOSED), later) == "expired"
    assert status_text(kept(PlanStatus.PROMOTED), later) == "promoted"


@pytest.mark.parametrize("status", [*(status.value for status in PlanStatus), "expired"])
def test_what_comes_next_is_never_the_end_of_a_road(status: str):
    ended = {"rolled back", "undone", "abandoned"}

    assert bool(next_commands("p1", status)) == (status not in ended)


@pytest.mark.parametrize("control", [Control.PAUSED, Control.STOPPED, Control.CANCELLED])
def test_a_held_plan_is_resumed_before_anything_else_unless_it_is_built(control: Control):
    assert next_commands("p1", "applying", control)[0] == "backfill resume p1"
    assert next_commands("p1", "built", control) == next_commands("p1", "built")


def test_a_built_plan_that_can_only_wait_is_not_offered_for_promotion():
    assert next_commands("p1", "built", publishing=()) == (
        "backfill diff p1",
        "backfill abandon p1",
    )


SEVEN = tuple(f"2024-01-0{number}" for number in range(1, 8))
FAILED = AuditResult(
    audit="cost_is_usual",
    severity=Severity.BLOCKING,
    passed=False,
    found="9 rows",
    allowed="0 rows",
    failing_rows=9,
    cells=SEVEN,
)
PASSED = replace(FAILED, passed=True, found="0 rows", failing_rows=0, cells=())
WARNED = replace(FAILED, audit="same_sum", severity=Severity.WARNING, cells=())


def test_changed_audits_are_told_with_what_they_found_and_where():
    first = ", ".join(SEVEN[:5])

    told = list(audit_lines({"web.a": (PASSED,), "web.b": (PASSED, FAILED, WARNED)}))

    assert told == [
        "audited web.a: 1 changed audit on what stays published, 1 passed",
        "audited web.b: 3 changed audits on what stays published, 1 passed",
        f"  cost_is_usual (blocking) failed in {first}, ...: found 9 rows, allowed 0 rows",
        "  same_sum (warning) failed: found 9 rows, allowed 0 rows",
    ]


def test_only_a_failed_blocking_audit_blocks():
    assert blocks({"web.b": (PASSED, FAILED)})
    assert not blocks({"web.b": (PASSED, WARNED)})
    assert not blocks({})
