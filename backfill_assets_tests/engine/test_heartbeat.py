"""What a run holds: its heartbeat keeps it while it is worked on, and tells the state of what has ended."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.batch.table_turn import reconciled
from backfill_assets.engine.project.heartbeat import renewing_claims
from backfill_assets.engine.project.waiting import leased
from backfill_assets.state.database import StateUnavailableError
from backfill_assets_tests.engine.queue_world import QueueWorld
from backfill_assets_tests.engine.test_looked_again import VISITS

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets.state.locks import CommitLock


def test_a_lock_that_could_not_be_given_back_is_given_back_once_the_state_is_there_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    world = QueueWorld.of(tmp_path, VISITS)
    run = world.run()
    version = run.pointer(VISITS).version
    lock = world.store.locks.take_commit_lock(version, "a-batch")

    real, failing = world.store.locks.release_commit_lock, [2, 1]

    def release(held: CommitLock) -> None:
        if failing:
            failing.pop()
            raise StateUnavailableError("state.db", "its disk is full")
        real(held)

    monkeypatch.setattr(world.store.locks, "release_commit_lock", release)
    with reconciled(run, lock):
        pass
    with pytest.raises(StateUnavailableError):
        run.tell_untold()

    run.tell_untold()

    assert not run.untold
    assert not world.store.locks.take_commit_lock(version, "another").taken_over


def test_a_beat_waits_for_nothing_that_the_state_is_told_besides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    world = QueueWorld.of(tmp_path, VISITS)
    done: list[str] = []
    told = threading.Event()

    def heartbeat(_: str) -> None:
        done.append("beat")
        if len(done) == 1:
            raise StateUnavailableError("state.db", "its disk is full")

    def afterwards() -> None:
        done.append("told")
        told.set()
        raise StateUnavailableError("state.db", "its disk is full")

    monkeypatch.setattr(world.store.batches, "heartbeat", heartbeat)
    monkeypatch.setattr(type(world.store), "lease_seconds", 3.0)
    with renewing_claims(world.store, "run-1", afterwards):
        told.wait()

    assert done[:3] == ["beat", "beat", "told"]


def test_a_lease_is_renewed_for_as_long_as_it_is_held(tmp_path: Path):
    """Channels may be slow: another process would send the same notices."""
    run = QueueWorld.of(tmp_path, VISITS).run()

    def is_beating() -> bool:
        return f"heartbeat of {run.run_id}" in {each.name for each in threading.enumerate()}

    with leased(run, "notices"):
        assert is_beating()
    assert not is_beating()
