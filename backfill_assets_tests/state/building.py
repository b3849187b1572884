"""Small values for tests of the state: a clock, days, requests and commits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.intervals.interval import Interval
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.models.content import CellProfile, Content
from backfill_assets.snapshots.batch import BatchCommit, BatchRequest, OpenBatch
from backfill_assets.snapshots.environment import PROD, Pointer
from backfill_assets.snapshots.slots import Slots
from backfill_assets.state import locks, owed, promotions
from backfill_assets.state.tables import COUNTER, ENVIRONMENTS, METADATA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.snapshots.publication import Intent
    from backfill_assets.snapshots.ready import InputPin
    from backfill_assets.state.locks import CommitLock
    from backfill_assets.state.store import Store

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
NOON = datetime(2024, 6, 1, 12, tzinfo=UTC)
LEASE = 60.0


@dataclass
class Clock:
    """A clock that only a test moves."""

    now: datetime = NOON

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def days(start: int, end: int) -> Interval:
    """Days `[start, end)`, counted from the first of January."""
    return Interval(FIRST + timedelta(days=start), FIRST + timedelta(days=end))


def each_day(start: int, end: int) -> tuple[Interval, ...]:
    return tuple(days(at, at + 1) for at in range(start, end))


def version_of(model: str) -> str:
    return f"{model}__v1"


def add_model(store: Store, model: str, environment: str = PROD) -> Pointer:
    version = version_of(model)
    wanted = Pointer(environment, model, f"print-{model}", version, -1)
    return store.environments.ensure_pointer(wanted, f"/data/{version}")


@dataclass(frozen=True)
class Asked:
    """The parts of a request that tests vary."""

    model: str = "orders"
    start: int = 0
    end: int = 3
    run: str = "run-1"
    root: str | None = None
    attempt: int = 1
    reason: str = "restated"
    reads: Mapping[str, IntervalSet] = field(default_factory=dict)
    environment: str = PROD
    table: str | None = None
    plan: str | None = None
    slots: Slots = field(default_factory=Slots)
    resources: Mapping[str, str] = field(default_factory=dict)
    sources: tuple[InputPin, ...] = ()
    also: tuple[tuple[int, int], ...] = ()

    @property
    def request(self) -> BatchRequest:
        version = self.table or version_of(self.model)
        spans = ((self.start, self.end), *self.also)
        return BatchRequest(
            batch_id=f"{self.run}/{version}/{self.start}-{self.end}",
            environment=self.environment,
            model=self.model,
            version=version,
            fingerprint=f"print-{self.model}",
            stretches=IntervalSet.of(days(*each) for each in spans),
            cells=tuple(day for each in spans for day in each_day(*each)),
            reads=self.reads,
            source_pins=self.sources,
            run_id=self.run,
            root_id=self.root or self.run,
            plan_id=self.plan,
            reason=self.reason,
            attempt=self.attempt,
            slots=self.slots,
            resources=self.resources,
        )


def content(rows: int, key: int = 7, **columns: int) -> Content:
    return Content(rows, key, columns or {"amount": 11})


def commit_of(
    opened: OpenBatch,
    lock: CommitLock,
    contents: Mapping[Interval, Content] | None = None,
    audits: tuple[AuditResult, ...] = (),
) -> BatchCommit:
    held = contents or dict.fromkeys(opened.request.cells, content(10))
    profiles = [CellProfile(cell, of, {}, {}) for cell, of in held.items()]
    return BatchCommit.of(opened, lock.token, NOON, profiles, audits)


def write(
    store: Store, opened: OpenBatch, contents: Mapping[Interval, Content] | None = None
) -> BatchCommit:
    """Commit and record a batch, as the next delta_version of its table."""
    request = opened.request
    lock = store.locks.take_commit_lock(request.version, request.batch_id)
    commit = replace(commit_of(opened, lock, contents), started_at=store._clock())
    store.batches.record(commit, lock, lock.known_head + 1, bytes_written=100, finished_at=NOON)
    store.locks.release_commit_lock(lock)
    return commit


def fill(store: Store, asked: Asked, contents: Mapping[Interval, Content] | None = None):
    """Open, commit and record."""
    return write(store, store.batches.open_batch(asked.request), contents)


def emptied(store: Store) -> None:
    """Forget everything but the counter and the environments that people read."""

    def wipe(connection: sa.Connection) -> None:
        for table in METADATA.sorted_tables:
            if table.name not in (COUNTER.name, ENVIRONMENTS.name):
                connection.execute(sa.delete(table))
        connection.execute(sa.delete(ENVIRONMENTS).where(ENVIRONMENTS.c.opened.is_not(None)))

    store._database.write(wipe)


def owe(
    store: Store,
    version: str,
    cells: IntervalSet,
    reason: str,
    *,
    plan_id: str | None = None,
    environment: str | None = None,
) -> None:
    """Declare cells of one version wrong; as a rollback or a workspace does in its transaction."""
    mark = owed.Mark(reason, plan_id, environment)
    store._database.write(lambda connection: owed.mark_owed(connection, version, cells, mark))


def open_promotions(store: Store) -> list[Intent]:
    """The intents that were begun, and neither published nor withdrawn."""
    return store._database.read(promotions.open_intents)


def check_lock(store: Store, lock: CommitLock) -> None:
    """Look whether a lock is still its holder's, as every write under it does."""
    store._database.read(lambda connection: locks.check_lock(connection, lock))
