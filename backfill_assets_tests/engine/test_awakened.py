"""Processes that were silent for longer than their lease, and go on: found by the protocol's model."""

from __future__ import annotations

import os
import threading
from contextlib import contextmanager
from datetime import date, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from backfill_assets.engine.batch.commit_turn import commit_turn, record
from backfill_assets.engine.batch.table_turn import reconcile, take
from backfill_assets.engine.project.plan_terms import USUAL
from backfill_assets.engine.upkeep import collecting
from backfill_assets.engine.upkeep.collecting import GRACE, collect, settle_read
from backfill_assets.state.opening import CellsReadyError
from backfill_assets.state.store import Store
from backfill_assets.warehouse.files import collection
from backfill_assets.warehouse.files.cell_files import CellFile, files_at, new_folder
from backfill_assets.warehouse.files.commit import prepare_table, unwritten_cells
from backfill_assets.warehouse.files.housekeeping import create_table, restore
from backfill_assets.warehouse.log.delta_log import ABSENT, head
from backfill_assets.warehouse.log.ticket import CREATED, CommitLostError, Ticket, commit_properties
from backfill_assets.warehouse.spark.spark_errors import CommitConflictError
from backfill_assets_tests.builders import a_model
from backfill_assets_tests.new_state import begin_sqlite
from backfill_assets_tests.state.building import LEASE, Asked, Clock, add_model, commit_of
from backfill_assets_tests.warehouse.shop import entry
from backfill_assets_tests.warehouse.test_blocks import HOURLY, hourly, lying, texts, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from backfill_assets.snapshots.batch import OpenBatch
    from backfill_assets.state.locks import CommitLock
    from backfill_assets.warehouse.files.compaction import Joined

TABLE = "orders__v1"
SCHEMA = pa.schema([("a", pa.int64()), ("_cell", pa.date32())])


class Place:
    """One table with its state, and whoever is at work on it; nothing here needs Spark."""

    def __init__(self, folder: Path, lease: float = LEASE) -> None:
        self.clock = Clock()
        url = begin_sqlite(folder / "state.db")
        self.store = Store.open(url, clock=self.clock, lease_seconds=lease, data_root=str(folder))
        add_model(self.store, "orders")
        self.root, self.path = str(folder), str(folder / TABLE)
        self.store.versions.version_path = lambda _: self.path  # type: ignore[method-assign]

    def run(self, run_id: str = "r") -> Any:  # noqa: ANN401 - what a turn asks of a run
        project = SimpleNamespace(views=(), terms=USUAL)
        return SimpleNamespace(
            store=self.store,
            run_id=run_id,
            clock=self.clock,
            project=project,
            data_root=self.root,
            tell=lambda telling: telling(),
        )

    def pass_lease(self) -> None:
        self.clock.now += timedelta(seconds=2 * LEASE)

    def create(self, token: int) -> None:
        ticket = Ticket(self.path, TABLE, token, f'{CREATED}"x"}}')
        said = commit_properties(ticket, ticket.transactions[0])
        DeltaTable.create(self.path, SCHEMA, partition_by=["_cell"], commit_properties=said)

    def created(self) -> None:
        lock = take(self.run(), TABLE, "first")
        self.create(lock.token)
        reconcile(self.run(), lock)
        self.store.locks.release_commit_lock(lock)

    def taken_over(self) -> tuple[CommitLock, CommitLock]:
        """Let a holder fall silent in its turn, and another take the lock over."""
        silent = take(self.run(), TABLE, "silent")
        reconcile(self.run(), silent)
        self.pass_lease()
        return silent, take(self.run(), TABLE, "other")

    def hours(self, *numbers: int) -> None:
        """Make a table whose cells are hours, each filled by a batch of its own."""
        first = take(self.run(), TABLE, "first")
        create_table(
            lambda: pytest.fail("no session is needed"),
            hourly(),
            self.path,
            app_id=TABLE,
            token=first.token,
        )
        reconcile(self.run(), first)
        self.store.locks.release_commit_lock(first)
        for number in numbers:
            opened = self.batch(f"run-{number}", start=number, end=number + 1)
            with (
                commit_turn(self.run(), opened) as lock,
                unwritten_cells(self.path, HOURLY) as written,
            ):
                write(written, {number: ["a"]})
                said = commit_of(opened, lock)
                ticket = Ticket(self.path, TABLE, lock.token, said.to_json())
                done = written.commit(texts(number), written.files, ticket)
                record(self.run(), lock, said, done)

    def batch(self, run: str, **asked: Any) -> OpenBatch:  # noqa: ANN401
        return self.store.batches.open_batch(Asked(run=run, reason="gap", **asked).request)

    def commit(self, opened: OpenBatch, lock: CommitLock, files: Iterable[CellFile] = ()) -> None:
        said, by_cell = commit_of(opened, lock), dict[str, list[CellFile]]()
        for file in files:
            by_cell.setdefault(file.first, []).append(file)
        record(
            self.run(),
            lock,
            said,
            entry(by_cell, Ticket(self.path, TABLE, lock.token, said.to_json())),
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_gap_that_a_silent_batch_filled_after_all_is_left_as_it_is(place: Place):
    place.created()
    silent = place.batch("silent")
    with commit_turn(place.run(), silent) as lock:
        place.pass_lease()
        other = place.batch("other")
        place.commit(silent, lock)
    with pytest.raises(CellsReadyError), commit_turn(place.run(), other):
        pytest.fail("its turn came over cells that are ready")
    ready = {ready_record.batch_id for ready_record in place.store.versions.ready_records(TABLE)}
    assert ready == {silent.request.batch_id}


def test_a_silent_writer_that_makes_the_table_after_its_lock_is_gone_commits_nothing_more(
    place: Place,
):
    silent, other = place.taken_over()
    assert other.taken_over
    place.create(silent.token)
    reconcile(place.run(), other)
    with pytest.raises(CommitLostError):
        entry({}, Ticket(place.path, TABLE, silent.token, "its batch"))
    assert place.store.versions.known_head(TABLE) == head(place.path)


def test_a_table_that_a_silent_writer_makes_during_the_next_ones_turn_is_looked_at_first(
    place: Place,
):
    silent, other = place.taken_over()
    reconcile(place.run(), other)
    place.create(silent.token)
    ticket = Ticket(place.path, TABLE, other.token, "the next batch", known=ABSENT)
    with pytest.raises(CommitConflictError):
        prepare_table(lambda: pytest.fail("no session is needed"), a_model(), ticket)
    with pytest.raises(CommitLostError):
        entry({}, Ticket(place.path, TABLE, silent.token, "its batch"))


def test_a_collection_keeps_its_lock_while_it_deletes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place = Place(tmp_path, lease=0.3)
    place.created()
    first = place.batch("first")
    with commit_turn(place.run(), first) as lock:
        place.commit(first, lock)
    below = tmp_path / TABLE / new_folder() / "_cell=2024-01-06"
    below.mkdir(parents=True)
    pq.write_table(pa.table({"a": [1]}), below / "part-0.parquet")
    old = (place.clock.now - 2 * GRACE).timestamp()
    os.utime(below / "part-0.parquet", (old, old))
    real, beat, hear = collection.delete_files, threading.Event(), place.store.batches.heartbeat

    def heard(run_id: str) -> None:
        hear(run_id)
        beat.set()

    def after_a_beat(path: str, names: Iterable[str]) -> None:
        beat.wait()
        real(path, names)

    place.store.batches.heartbeat = heard
    monkeypatch.setattr(collection, "delete_files", after_a_beat)
    collect(place.run(), timedelta(days=30))
    assert not (below / "part-0.parquet").exists()


def test_files_that_were_joined_longer_ago_than_the_grace_stand_for_no_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    place.hours(1, 2)
    real, before = collecting.joined_files, lying(place.path)

    @contextmanager
    def slowly(path: str) -> Iterator[Joined]:
        with real(path) as joined:
            place.clock.now += GRACE
            yield joined

    with monkeypatch.context() as patch:
        patch.setattr(collecting, "joined_files", slowly)
        assert collect(place.run(), timedelta(days=30)).compacted == ()
    assert lying(place.path) == before
    (joined,) = collect(place.run(), timedelta(days=30)).compacted
    assert (joined.files, joined.blocks) == (2, 1)


def test_files_that_a_dead_collection_had_joined_are_accounted_for_by_the_next_and_read_at_the_pin(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    place.hours(1, 2)
    with monkeypatch.context() as patch:
        patch.setattr(place.store.locks, "follow_head", dies)
        with pytest.raises(KeyboardInterrupt):
            collect(place.run(), timedelta(days=30))
    place.pass_lease()
    settle_read(place.run("next"))
    (pointer,) = place.store.environments.own_pointers("prod").values()
    assert pointer.delta_version == place.store.versions.known_head(TABLE) == head(place.path)
    assert len(files_at(place.path, pointer.delta_version)) == 1


def dies(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_way_back_behind_what_the_state_has_recorded_is_taken_back(place: Place):
    place.hours(1, 2)
    elsewhere = take(place.run(), TABLE, "with-an-older-copy-of-the-state")
    restore(place.path, 1, app_id=TABLE, token=elsewhere.token)
    place.store.locks.release_commit_lock(elsewhere)
    assert DeltaTable(place.path).to_pyarrow_table().num_rows == 1

    reconcile(place.run(), take(place.run(), TABLE, "next"))

    assert DeltaTable(place.path).to_pyarrow_table().num_rows == 2
    assert place.store.versions.known_head(TABLE) == head(place.path)


def test_rows_that_were_taken_back_stay_away_when_the_next_holder_dies_while_it_accounts_for_them(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    place.created()
    strange = pa.table({"a": [666], "_cell": pa.array([date(2026, 1, 1)])})
    write_deltalake(place.path, strange, mode="append")
    dying = take(place.run(), TABLE, "dying")
    restore(place.path, place.store.versions.known_head(TABLE), app_id=TABLE, token=dying.token)
    place.pass_lease()
    second = take(place.run(), TABLE, "second")
    with monkeypatch.context() as patch:
        # It dies at the fence, once the restore is known.
        patch.setattr(place.store.locks, "follow_head", dies)
        with pytest.raises(KeyboardInterrupt):
            reconcile(place.run(), second)
    place.pass_lease()
    third = take(place.run(), TABLE, "third")
    reconcile(place.run(), third)
    assert DeltaTable(place.path).to_pyarrow_table().num_rows == 0
    assert place.store.versions.known_head(TABLE) == head(place.path)
