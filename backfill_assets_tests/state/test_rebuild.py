"""A rebuilt state answers like the one that was lost."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import Phase, given, settings, strategies as st
from sqlalchemy import event

from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.publication import PROMOTED
from backfill_assets.state.rebuild import LoggedCommit, TableHead
from backfill_assets.state.store import Store
from backfill_assets.state.versions import NO_COMMIT
from backfill_assets_tests.state.building import (
    NOON,
    Asked,
    Clock,
    add_model,
    commit_of,
    content,
    days,
    version_of,
)
from backfill_assets_tests.state.publishing import Trial, cells

if TYPE_CHECKING:
    from backfill_assets.snapshots.batch import BatchCommit, BatchRequest, OpenBatch

# c reads a and b, b reads a, a reads its own day before.
READS = {"a": ("a",), "b": ("a",), "c": ("a", "b")}
DAYS = 4


class Life:
    """A history of three models: batches open, commit in any order, or fail."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.running: list[OpenBatch] = []
        self.log: list[LoggedCommit] = []
        self.opened = 0
        for model in READS:
            add_model(store, model)

    def open(self, model: str, start: int, end: int) -> None:
        """Open a batch over days that no running batch holds, where its inputs allow it."""
        held = IntervalSet.of(
            each.request.interval for each in self.running if each.request.model == model
        )
        cells = IntervalSet.of([days(start, end)])
        ready = self.store.views.of("prod").ready
        reads = {upstream: cells & ready(upstream) for upstream in READS[model]}
        if held & cells:
            return
        self.opened += 1
        asked = Asked(model, start, end, run=f"run-{self.opened}", reads=reads)
        self.running.append(self.store.batches.open_batch(asked.request))

    def commit(self, which: int, values: tuple[int, ...], moved: int | None) -> None:
        """Commit one of the running batches; rows may move into one more cell."""
        if not self.running:
            return
        opened = self.running.pop(which % len(self.running))
        request = opened.request
        held = {
            cell: content(values[at], values[at], x=values[at], y=values[-at - 1])
            for at, cell in enumerate(request.cells)
        }
        if moved is not None:
            held.setdefault(days(moved, moved + 1), content(9, 9, x=values[0], y=9))
        lock = self.store.locks.take_commit_lock(request.version, request.batch_id)
        commit = commit_of(opened, lock, held)
        self.record(commit, lock.known_head + 1)
        self.store.batches.record(
            commit, lock, lock.known_head + 1, bytes_written=7, finished_at=NOON
        )
        self.store.locks.release_commit_lock(lock)

    def record(self, commit: BatchCommit, at: int) -> None:
        path = f"/data/{commit.version}"
        self.log.append(LoggedCommit(commit.version, path, at, commit, NOON, 7))

    def fence(self, model: str) -> None:
        """An empty commit of a takeover: the head moves, nothing becomes ready."""
        lock = self.store.locks.take_commit_lock(version_of(model), "fence")
        self.store.locks.advance_head(lock, lock.known_head + 1)
        self.store.locks.release_commit_lock(lock)

    def fail(self, which: int) -> None:
        if self.running:
            failed = self.running.pop(which % len(self.running)).request.batch_id
            self.store.batches.fail_batch(failed, error="e", audits=(), finished_at=NOON)


def facts(store: Store) -> dict[str, object]:
    """All that a state says, but for the counter's own numbers."""
    told: dict[str, object] = {
        f"{model}@{at}": [
            (
                each.cell,
                each.valid_from,
                each.valid_to,
                each.fingerprint,
                each.batch_id,
                each.content,
            )
            for each in store.versions.ready_records(version_of(model), at)
        ]
        for model in READS
        for at in (*range(12), None)
    }
    told["batches"] = sorted(
        (replace(each, built_at=0) for each in store.batches.latest() if each.status == "committed"),
        key=lambda each: each.batch_id,
    )  # fmt: skip
    told["pins"] = {
        model: (each.version, each.delta_version)
        for model, each in store.environments.pointers("prod").items()
        if each.delta_version != NO_COMMIT
    }
    return told


def reopened(store: Store) -> dict[object, bool]:
    """For every reader's cell and upstream's cell: has the upstream changed since it was read?"""
    seen: dict[object, bool] = {}
    for reader, upstreams in READS.items():
        for mine in store.versions.ready_records(version_of(reader)):
            for upstream in upstreams:
                for theirs in store.versions.ready_records(version_of(upstream)):
                    stamps = theirs.changed_at
                    for name, at in {"": stamps.row_set, **stamps.columns}.items():
                        key = (reader, mine.cell, upstream, theirs.cell, name)
                        seen[key] = at > mine.built_at
    return seen


starts = st.integers(0, DAYS - 1)
values = st.tuples(*[st.integers(0, 2)] * DAYS)
opening = st.tuples(st.just("open"), st.sampled_from(sorted(READS)), starts, st.integers(1, 2))
committing = st.tuples(st.just("commit"), st.integers(0, 5), values, st.just(None) | starts)
rare = st.one_of(
    st.tuples(st.just("fail"), st.integers(0, 5)),
    st.tuples(st.just("fence"), st.sampled_from(sorted(READS))),
)
step = st.integers(0, 9).flatmap(
    lambda dice: rare if dice == 9 else committing if dice % 2 else opening
)


def live(life: Life, steps: list[tuple[Any, ...]]) -> None:
    for what, *how in steps:
        if what == "open":
            model, start, length = how
            life.open(model, start, min(DAYS, start + length))
        else:
            getattr(life, what)(*how)


def store_in(folder: str, name: str, stack: ExitStack) -> Store:
    url = f"sqlite:///{Path(folder) / name}.db"
    store = stack.enter_context(Store.open(url, clock=Clock()))
    # Thousands of small transactions, and nobody pulls the plug.
    engine = store._database._engine
    event.listen(engine, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF").close())
    engine.dispose()
    return store


# A history is slow to shrink, and short enough to read.
@settings(max_examples=25, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(
    st.lists(step, min_size=30, max_size=40),
    st.lists(step, min_size=10, max_size=20),
    st.randoms(use_true_random=False),
)
def test_a_rebuilt_state_answers_like_the_one_that_was_lost_and_so_does_its_successor(
    before: list[tuple[Any, ...]], after: list[tuple[Any, ...]], shuffle: Random
):
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        lost = Life(store_in(folder, "lost", stack))
        live(lost, before)
        rebuilt = store_in(folder, "rebuilt", stack)
        shuffle.shuffle(lost.log)
        heads = {version_of(model): head_of(lost.store, model) for model in READS}
        rebuilt.rebuild(lost.log, heads=heads)
        assert facts(rebuilt) == facts(lost.store)
        assert reopened(rebuilt) == reopened(lost.store)

        # Life goes on, and the state is lost once more: the log now mixes two numberings.
        heir = Life(rebuilt)
        heir.log, heir.opened = list(lost.log), lost.opened
        live(heir, after)
        again = store_in(folder, "again", stack)
        again.rebuild(heir.log)
        assert facts(again) == facts(heir.store)
        assert reopened(again) == reopened(heir.store)


def head_of(store: Store, model: str) -> TableHead:
    return TableHead(store.versions.known_head(version_of(model)), 0)


def _changed_since(store: Store) -> bool:
    """Whether b's only cell is stale: a, which it reads, changed after b had pinned it."""
    (mine,) = store.versions.ready_records(version_of("b"))
    return any(
        each.changed_at.row_set > mine.built_at
        for each in store.versions.ready_records(version_of("a"))
    )


def _cells_of_a(store: Store) -> dict[str, IntervalSet]:
    return {"a": store.views.of("prod").ready("a")}


@pytest.mark.parametrize("stale", [True, False])
def test_what_was_stale_is_stale_after_any_number_of_rebuilds(tmp_path: Path, *, stale: bool):
    with ExitStack() as stack:
        life = Life(store_in(str(tmp_path), "0", stack))
        store = life.store
        slow = store.batches.open_batch(Asked("a", 0, 1).request)
        for attempt in range(20):  # numbers that no log will ever show
            store.batches.open_batch(Asked("c", 0, 1, attempt=attempt).request)
        reader = None if not stale else store.batches.open_batch(_reading_a(store))
        life.running = [slow]
        life.commit(0, (1, 1, 1, 1), None)
        life.running = [reader or store.batches.open_batch(_reading_a(store))]
        life.commit(0, (1, 1, 1, 1), None)
        assert _changed_since(store) == stale

        for name in ("1", "2", "3"):
            rebuilt = store_in(str(tmp_path), name, stack)
            rebuilt.rebuild(life.log)
            assert _changed_since(rebuilt) == stale
            life = _living_on(rebuilt, life)


def _reading_a(store: Store) -> BatchRequest:
    return Asked("b", 0, 1, reads=_cells_of_a(store)).request


def _living_on(store: Store, life: Life) -> Life:
    """The next life refreshes what c holds: its numbers must not come before the older ones."""
    heir = Life(store)
    heir.log, heir.opened = life.log, life.opened
    heir.open("c", 0, 1)
    heir.commit(0, (2, 2, 2, 2), None)
    newest = store.batches.latest(limit=1)[0]
    assert newest.built_at > max(each.commit.built_at for each in life.log[:-1])
    return heir


def test_a_state_that_holds_something_is_not_rebuilt(store: Store):
    way = "its -wal and -shm" if store._database.dialect == "sqlite" else "BACKFILL_STATE_URL"
    with pytest.raises(RequestError, match=way):
        store.rebuild([])


def test_tokens_and_heads_go_on_after_a_rebuild(store: Store, tmp_path: Path):
    opened = store.batches.open_batch(Asked().request)
    lock = store.locks.take_commit_lock("orders__v1", "a", above=20)
    commit = commit_of(opened, lock)
    with ExitStack() as stack:
        rebuilt = store_in(str(tmp_path), "rebuilt", stack)
        log = [LoggedCommit("orders__v1", "/data/orders__v1", 3, commit)]
        rebuilt.rebuild(log, heads={"orders__v1": TableHead(5, 30)})

        lock = rebuilt.locks.take_commit_lock("orders__v1", "b")
        assert (lock.token, lock.known_head, lock.taken_over) == (31, 5, False)
        assert rebuilt.environments.pointers("prod")["orders"].delta_version == 3


def test_what_plans_built_comes_back_but_no_environment_points_there(store: Store, tmp_path: Path):
    """What a promotion copied in is published again; the rest only the state knew."""
    add_model(store, "orders")
    log: list[LoggedCommit] = []

    def commit(asked: Asked, at: int, held: int) -> None:
        opened = store.batches.open_batch(asked.request)
        lock = store.locks.take_commit_lock(opened.request.version, opened.request.batch_id)
        made = commit_of(opened, lock, dict.fromkeys(asked.request.cells, content(held)))
        store.batches.record(made, lock, at, bytes_written=1, finished_at=NOON)
        store.locks.release_commit_lock(lock)
        path = f"/data/{made.version}"
        log.append(LoggedCommit(made.version, path, at, made, NOON, 1))

    commit(Asked("orders", 0, 4), 0, 10)
    trial = Trial(store)
    table = trial.in_place("orders", cells((1, 3)))
    trial.open()
    inside = Asked("orders", 1, 3, environment=trial.workspace, table=table, plan="p1")
    commit(inside, 0, 20)
    promoted = replace(
        log[1].commit, batch_id="p1:9:orders", environment="prod", version="orders__v1",
        reason=PROMOTED, inputs=(), emptied=cells((3, 4)),
    )  # fmt: skip
    log.append(LoggedCommit("orders__v1", "/data/orders__v1", 1, promoted, NOON, 1))

    with Store.open(f"sqlite:///{tmp_path}/rebuilt.db", clock=Clock()) as rebuilt:
        rebuilt.rebuild(log)
        records = {
            each.cell: each.content.rows for each in rebuilt.versions.ready_records("orders__v1")
        }
        assert records == {days(0, 1): 10, days(1, 2): 20, days(2, 3): 20}
        assert rebuilt.views.of("prod").ready("orders") == cells((0, 3))
        assert len(rebuilt.versions.ready_records("orders__v1", 0)) == 4
        assert len(rebuilt.versions.ready_records(table)) == 2
        assert rebuilt.environments.own_pointers("plan:p1") == {}
        assert [each.name for each in rebuilt.environments.by_name()] == ["prod"]
        assert [
            each.version for each in rebuilt.collection.collectable_versions(timedelta(days=30))
        ] == [table]


def test_no_environment_but_prod_comes_back_since_it_may_have_been_dropped(
    store: Store, tmp_path: Path
):
    add_model(store, "orders")
    opened = store.batches.open_batch(Asked("orders", 0, 1).request)
    lock = store.locks.take_commit_lock(opened.request.version, opened.request.batch_id)
    made = commit_of(opened, lock, dict.fromkeys(opened.request.cells, content(1)))
    of_dev = replace(made, environment="dev", version="orders__dev")
    log = [
        LoggedCommit(commit.version, f"/data/{commit.version}", 0, commit, NOON, 1)
        for commit in (made, of_dev)
    ]
    with Store.open(f"sqlite:///{tmp_path}/rebuilt.db", clock=Clock()) as rebuilt:
        rebuilt.rebuild(log)
        assert set(rebuilt.environments.own_pointers("prod")) == {"orders"}
        assert rebuilt.environments.own_pointers("dev") == {}
        unneeded = rebuilt.collection.collectable_versions(timedelta(days=30))
        assert [each.version for each in unneeded] == ["orders__dev"]
