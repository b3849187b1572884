from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets_tests.state.building import (
    NOON,
    Asked,
    commit_of,
    content,
    days,
    each_day,
    fill,
    owe,
    write,
)

if TYPE_CHECKING:
    from backfill_assets.state.store import Store

TABLE = "orders__v1"
FAILED = AuditResult(
    "unique_id", Severity.BLOCKING, passed=False, found="2 duplicates", allowed="0",
    failing_rows=2, cells=("2024-01-01",), sample=('{"id": 1}',),
)  # fmt: skip


def _everything(store: Store) -> tuple[object, ...]:
    return (
        store.versions.ready_records(TABLE), store.batches.latest(), store.environments.pointers("prod"),
        store.batches.audit_results(), store.versions.known_head(TABLE), store.views.of("prod"),
    )  # fmt: skip


def test_the_inputs_of_more_batches_are_read_than_one_query_may_name(store: Store):
    opened = store.batches.open_batch(Asked().request)
    ids = (f"batch-{number}" for number in range(70_000))
    inputs = store.batches.inputs_of((opened.request.batch_id, *ids))
    assert inputs == {opened.request.batch_id: ()}


def test_cells_become_ready_and_visible_together(store: Store):
    commit = fill(store, Asked(start=0, end=3))

    view = store.views.of("prod")
    assert view.ready("orders") == IntervalSet.of([days(0, 3)])
    assert view.models["orders"].pointer.delta_version == 0
    assert view.claimed == {}
    assert store.versions.known_head(TABLE) == 0
    assert store.versions.watermark(TABLE) == days(2, 3).end
    row = store.batches.get(commit.batch_id)
    assert (row.status, row.rows, row.bytes_written, row.delta_version) == ("committed", 30, 100, 0)
    assert (row.started_at, row.finished_at, row.run_id) == (NOON, NOON, "run-1")


def test_a_commit_recorded_twice_is_recorded_once(store: Store, other: Store):
    opened = store.batches.open_batch(Asked().request)
    lock = store.locks.take_commit_lock(TABLE, opened.request.batch_id)
    commit = commit_of(opened, lock, audits=(replace(FAILED, severity=Severity.WARNING),))
    store.batches.record(commit, lock, 0, bytes_written=1, finished_at=NOON)
    once = _everything(store)

    store.batches.record(commit, lock, 0, bytes_written=1, finished_at=NOON)
    store.locks.release_commit_lock(lock)
    other.batches.record(commit, lock, 0, bytes_written=1, finished_at=NOON)

    assert _everything(store) == once


def test_a_rebuild_of_equal_content_keeps_every_stamp(store: Store):
    fill(store, Asked(start=0, end=1))
    (before,) = store.versions.ready_records(TABLE)
    fill(store, Asked(start=0, end=1, run="run-2"))
    (after,) = store.versions.ready_records(TABLE)

    assert after.changed_at == before.changed_at
    assert after.built_at > before.built_at
    assert (after.valid_from, after.valid_to) == (1, None)


def test_only_columns_that_changed_are_stamped_anew(store: Store):
    day = days(0, 1)
    fill(store, Asked(start=0, end=1), {day: content(5, a=1, b=2)})
    (before,) = store.versions.ready_records(TABLE)
    fill(store, Asked(start=0, end=1, run="run-2"), {day: content(5, a=1, b=3)})
    (after,) = store.versions.ready_records(TABLE)

    assert after.changed_at.row_set == before.changed_at.row_set
    assert after.changed_at.columns["a"] == before.changed_at.columns["a"]
    assert after.changed_at.columns["b"] > after.built_at


def test_a_checksum_of_38_digits_comes_back_whole(store: Store):
    huge = 10**38 - 1
    fill(store, Asked(start=0, end=1), {days(0, 1): content(5, -huge, a=huge)})

    (record,) = store.versions.ready_records(TABLE)
    assert record.content == content(5, -huge, a=huge)


def test_a_pin_sees_the_records_of_its_delta_version(store: Store):
    fill(store, Asked(start=0, end=2), dict.fromkeys(each_day(0, 2), content(1)))
    fill(store, Asked(start=1, end=3, run="run-2"), dict.fromkeys(each_day(1, 3), content(2)))

    def rows(at: int | None) -> list[int]:
        return [each.content.rows for each in store.versions.ready_records(TABLE, at)]

    assert (rows(-1), rows(0), rows(1), rows(None)) == ([], [1, 1], [1, 2, 2], [1, 2, 2])
    assert store.versions.ready_records(TABLE, 0)[1].valid_to == 1


def test_the_content_before_is_told_for_ready_cells_only(store: Store):
    fill(store, Asked(start=0, end=2))
    cells = IntervalSet.of([days(1, 4)])

    assert store.views.content_at_pin("prod", "orders", cells) == {days(1, 2): content(10)}
    assert store.views.content_at_pin("prod", "orders", IntervalSet.empty()) == {}
    assert store.views.content_at_pin("prod", "unknown", cells) == {}


def test_a_cell_that_rows_moved_into_is_as_fresh_as_it_was(store: Store):
    fill(store, Asked(start=5, end=6, run="run-0"))
    (before,) = store.versions.ready_records(TABLE)
    opened = store.batches.open_batch(Asked(start=0, end=1).request)
    store.batches.claim_more(opened.request.batch_id, IntervalSet.of([days(5, 6)]))
    write(store, opened, {days(0, 1): content(9), days(5, 6): content(11)})

    moved = store.versions.ready_records(TABLE)[1]
    assert (moved.cell, moved.content.rows, moved.valid_from) == (days(5, 6), 11, 1)
    assert (moved.built_at, moved.batch_id) == (before.built_at, before.batch_id)
    assert moved.changed_at.row_set > opened.built_at
    assert store.batches.get(opened.request.batch_id).rows == 9


def test_rows_that_move_into_a_cell_that_was_never_built_do_not_make_it_ready(store: Store):
    opened = store.batches.open_batch(Asked(start=0, end=1).request)
    write(store, opened, {days(0, 1): content(9), days(5, 6): content(1)})

    assert store.views.of("prod").ready("orders") == IntervalSet.of([days(0, 1)])


def test_a_commit_found_in_the_log_is_adopted_although_its_batch_is_unknown(store: Store):
    opened = store.batches.open_batch(Asked().request)
    lock = store.locks.take_commit_lock(TABLE, "adopter")
    stranger = replace(commit_of(opened, lock), batch_id="stranger", run_id="run-x")
    store.batches.record(stranger, lock, 0, bytes_written=None, finished_at=NOON)

    assert store.batches.get("stranger").status == "committed"
    assert store.batches.get("stranger").run_id == "run-x"
    assert store.versions.built_by(TABLE, "run-1") == IntervalSet.of(opened.request.cells)
    assert not store.versions.built_by(TABLE, "run-x")


def test_adopting_an_older_attempt_leaves_the_newer_one_its_claims(store: Store):
    died = store.batches.open_batch(Asked().request)
    again = store.batches.open_batch(Asked(attempt=2).request)
    lock = store.locks.take_commit_lock(TABLE, again.request.batch_id)
    store.batches.record(commit_of(died, lock), lock, 0, bytes_written=None, finished_at=NOON)

    store.batches.check_claims(again.request.batch_id)
    assert store.batches.get(again.request.batch_id).status == "running"
    store.batches.record(commit_of(again, lock), lock, 1, bytes_written=None, finished_at=NOON)
    assert store.batches.get(again.request.batch_id).delta_version == 1


def test_commits_of_a_table_are_recorded_in_the_order_of_its_log(store: Store):
    opened = store.batches.open_batch(Asked().request)
    lock = store.locks.take_commit_lock(TABLE, opened.request.batch_id)
    store.locks.advance_head(lock, 4)

    with pytest.raises(RequestError, match="Commits of a table are recorded in the order"):
        store.batches.record(commit_of(opened, lock), lock, 4, bytes_written=None, finished_at=NOON)


def test_a_failed_batch_keeps_its_error_and_what_its_audits_found(store: Store):
    opened = store.batches.open_batch(Asked().request)
    batch_id = opened.request.batch_id
    store.batches.fail_batch(batch_id, error="audit failed", audits=(FAILED,), finished_at=NOON)

    row = store.batches.get(batch_id)
    assert (row.status, row.error, row.finished_at) == ("failed", "audit failed", NOON)
    (kept,) = store.batches.audit_results(batch_id=batch_id)
    assert kept.result == FAILED
    assert kept.audited.interval == days(0, 3)
    assert store.views.of("prod").ready("orders") == IntervalSet.empty()


def test_a_committed_batch_stays_committed_whatever_fails_afterwards(store: Store):
    commit = fill(store, Asked())
    store.batches.fail_batch(commit.batch_id, error="no events", audits=(), finished_at=NOON)

    assert store.batches.get(commit.batch_id).status == "committed"


def test_a_batch_keeps_the_spark_settings_it_ran_with_however_it_ended(store: Store):
    tuned = {"spark.sql.shuffle.partitions": "64"}
    done = fill(store, Asked(start=0, end=1, resources=tuned))
    failed = store.batches.open_batch(
        Asked(start=1, end=2, resources=tuned).request
    ).request.batch_id
    store.batches.fail_batch(failed, error="boom", audits=(), finished_at=NOON)
    plain = fill(store, Asked(start=2, end=3))

    assert store.batches.get(done.batch_id).resources == tuned
    assert store.batches.get(failed).resources == tuned
    assert store.batches.get(plain.batch_id).resources is None


def test_the_results_of_each_attempt_are_kept(store: Store):
    for attempt in (1, 2):
        opened = store.batches.open_batch(Asked(attempt=attempt).request)
        store.batches.fail_batch(
            opened.request.batch_id, error="e", audits=(FAILED,), finished_at=NOON
        )

    kept = store.batches.audit_results(model="orders")
    assert [each.audited.attempt for each in kept] == [2, 1]


def test_owed_cells_stay_owed_until_a_batch_that_began_afterwards(store: Store):
    early = store.batches.open_batch(Asked(start=0, end=2).request)
    owe(store, TABLE, IntervalSet.of([days(0, 5)]), "restated")
    write(store, early)
    assert store.views.of("prod").owed == {"orders": IntervalSet.of([days(0, 5)])}

    fill(store, Asked(start=1, end=3, run="run-2"))
    assert store.views.of("prod").owed == {"orders": IntervalSet.of([days(0, 1), days(3, 5)])}


def test_what_is_left_of_owed_cells_is_owed_since_they_were_declared_wrong(store: Store):
    owe(store, TABLE, IntervalSet.of([days(0, 5)]), "restated")
    at_work = store.batches.open_batch(Asked(start=3, end=5).request)
    fill(store, Asked(start=0, end=2, run="run-2"))
    write(store, at_work)
    assert store.views.of("prod").owed == {"orders": IntervalSet.of([days(2, 3)])}


def test_a_batch_of_several_stretches_leaves_owed_what_lies_between_them(store: Store):
    owe(store, TABLE, IntervalSet.of([days(0, 5)]), "restated")
    fill(store, Asked(start=0, end=1, also=((3, 4),)))
    assert store.views.of("prod").owed == {"orders": IntervalSet.of([days(1, 3), days(4, 5)])}


def test_a_commit_of_the_release_that_rounded_floats_equals_no_checksum_of_today(store: Store):
    opened = store.batches.open_batch(Asked().request)
    lock = store.locks.take_commit_lock(opened.request.version, opened.request.batch_id)
    commit = commit_of(opened, lock)
    logged = commit.to_json().replace('"exact":true,', "")
    old = BatchCommit.from_json(logged)
    assert old is not None
    store.batches.record(old, lock, 0, bytes_written=1, finished_at=NOON)
    (held,) = {
        (str(record.content.key), str(record.content.columns["amount"]))
        for record in store.versions.ready_records(opened.request.version, None)
    }
    batch = opened.request.batch_id
    assert held == (f"rounded:7:{batch}", f"rounded:11:{batch}")
