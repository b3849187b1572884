"""Collect what is not needed any more: expired environments, tables that nothing points at, old files.

Nothing else deletes a file. What a pin, a promise of a way back, a claim or an open promotion needs
stays, and what just became unneeded stays for a reader's grace period. Besides, files that have piled
up in a block of fine cells are joined.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.table_turn import (
    ForeignTableError,
    give_back,
    reconciled,
    refuse_foreign_commits,
    take,
)
from backfill_assets.engine.project.heartbeat import renewing_claims
from backfill_assets.engine.project.iceberg import describe_head, drop_old
from backfill_assets.engine.project.views import rewrite_views
from backfill_assets.errors import RequestError
from backfill_assets.snapshots.environment import plan_of, undone_in
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.collection import VersionNeededError
from backfill_assets.state.environments import UnknownEnvironmentError
from backfill_assets.state.locks import TableLockedError
from backfill_assets.state.promotions import PromotionPendingError
from backfill_assets.state.versions import UnknownVersionError
from backfill_assets.warehouse.files.collection import (
    GRACE,
    Vacuumed,
    delete_table,
    vacuum,
    vacuum_unborn,
)
from backfill_assets.warehouse.files.compaction import Compacted, joined_files, what_to_compact
from backfill_assets.warehouse.log.delta_log import ABSENT, CorruptTableError, head
from backfill_assets.warehouse.spark.spark_errors import (
    CommitConflictError,
    DamagedFileError,
    PinGoneError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.state.collection import Collectable
    from backfill_assets.state.locks import CommitLock


_DAMAGED = (RequestError, CorruptTableError, ForeignTableError, PinGoneError, DamagedFileError)
"""What a table raises of which something is lost; of a table itself that is gone, a `RequestError`."""

REPLAYS = "replays"
"""The folder beside the tables in which replays compute cells; a table of no commit lies there."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A table that could not be collected now, and is left to a later collection.

    Attributes:
        version: its id.
        why: in words.
    """

    version: str
    why: str


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection deleted, or would delete.

    Attributes:
        environments: expired ones, and workspaces of undos that died and can't be done any more.
        tables: of versions that are not needed any more.
        vacuumed: old files of tables that go on, and of replays that died.
        compacted: tables whose small files were joined.
        passed_over: tables at which another is at work, which may be another collection, whose publication
            died half-way, or that are damaged.
    """

    environments: tuple[str, ...]
    tables: tuple[Collectable, ...]
    vacuumed: tuple[Vacuumed, ...]
    compacted: tuple[Compacted, ...]
    passed_over: tuple[PassedOver, ...] = ()


def settle_read(run: RunContext) -> None:
    """Account for what others left in the tables that environments read, a collection's commit among it.

    Tables at which a publication is at work are left to it, and damaged ones are named by the collection that follows.

    Raises:
        TableLockedError: a live holder has a table and did not give it back in time.
    """
    for version in _tables_read(run):
        with suppress(PromotionPendingError, *_DAMAGED):
            path = run.store.versions.version_path(version)
            if head(path) != run.store.versions.known_head(version):
                with _turn(run, version):
                    pass


def what_to_collect(run: RunContext, promise: timedelta) -> Collected:
    """Say what a collection would delete; nothing is written.

    Tables of expired environments are named by a collection that follows the one which forgets the
    environments by the grace period.
    """
    passed_over: dict[str, str] = {}
    return Collected(
        environments=(*_expired(run), *_over(run, promise)),
        tables=tuple(run.store.collection.collectable_versions(promise, GRACE)),
        vacuumed=tuple(_vacuumed(run, promise, passed_over, dry_run=True)),
        compacted=tuple(_piled_up(run, passed_over)),
        passed_over=_left(passed_over),
    )


def collect(run: RunContext, promise: timedelta) -> Collected:
    """Delete what is not needed any more.

    Args:
        run: of any environment.
        promise: how long after a pointer's move the way back is kept open, unless more was promised then.
    """
    environments = tuple(_forgotten(run, promise))
    passed_over: dict[str, str] = {}
    tables = tuple(_deleted(run, promise, passed_over))
    vacuumed = tuple(_vacuumed(run, promise, passed_over, dry_run=False))
    compacted = tuple(_compacted(run, passed_over))
    for environment in sorted({file.environment for file in run.project.views}):
        rewrite_views(run, environment)  # before a later collection deletes what was joined
    return Collected(environments, tables, vacuumed, compacted, _left(passed_over))


def _left(passed_over: dict[str, str]) -> tuple[PassedOver, ...]:
    return tuple(PassedOver(version, why) for version, why in passed_over.items())


def _expired(run: RunContext) -> list[str]:
    """Name the expired environments that no other environment follows."""
    environments = run.store.environments.by_name()
    followed = {environment.follows for environment in environments}
    until = run.store.environments.expirations(timedelta(days=run.project.terms.environment_days))
    return [
        environment.name
        for environment in environments
        if environment.name in until and until[environment.name] <= run.clock()
        if not environment.protected and environment.name not in followed
    ]


def _over(run: RunContext, promise: timedelta) -> list[str]:
    """Name the workspaces of undos that died, of plans that can't be taken back any more."""
    promised = {move.plan_id for move in run.store.history.moves_to_keep(promise)}
    undone = {each.name: undone_in(each.name) for each in run.store.environments.by_name()}
    return [name for name, plan_id in undone.items() if plan_id and plan_id not in promised]


def _forgotten(run: RunContext, promise: timedelta) -> Iterator[str]:
    for name in _expired(run):
        # A dead publication there is to be finished first, or another collection has dropped it.
        with suppress(RequestError, UnknownEnvironmentError):
            run.store.environments.drop_environment(name)
            yield name
    for name in _over(run, promise):
        with suppress(CellsClaimedError, PromotionPendingError):
            run.store.environments.drop_workspace(plan_of(name) or name)
            yield name


def _deleted(
    run: RunContext, promise: timedelta, passed_over: dict[str, str]
) -> Iterator[Collectable]:
    """Delete the tables of versions that are not needed any more; one that was begun is finished.

    Each is deleted under its commit lock: one that another collection has forgotten meanwhile may be
    built anew in the same place.
    """
    for version in run.store.collection.collectable_versions(promise, GRACE):
        with (
            _passing_over(version.version, passed_over),
            # It is needed since it was listed, or gone.
            suppress(VersionNeededError, UnknownVersionError),
            _locked(run, version.version),
        ):
            run.store.collection.mark_collecting(version.version, promise, GRACE)
            delete_table(version.path)
            run.store.collection.forget_version(version.version, GRACE)
            yield version


@contextmanager
def _locked(run: RunContext, version: str) -> Iterator[None]:
    """Hold the commit lock of a table that is to go; what its log says of its last holder counts no more."""
    with renewing_claims(run.store, run.run_id):
        lock = run.store.locks.take_commit_lock(version, run.run_id)
        try:
            yield
        finally:
            give_back(run, lock)


def _vacuumed(
    run: RunContext, promise: timedelta, passed_over: dict[str, str], *, dry_run: bool
) -> Iterator[Vacuumed]:
    """Vacuum the tables that environments read, each under its commit lock, and what replays left."""
    for version, oldest in sorted(_oldest_needed(run, promise).items()):
        path, now = run.store.versions.version_path(version), run.clock()
        with _passing_over(version, passed_over):
            if oldest < 0 <= head(path):
                continue  # the state knows no commit of this table
            with nullcontext() if dry_run else _alone(run, version, oldest):
                vacuumed = _vacuum(path, oldest, now, dry_run=dry_run)
                if vacuumed.files:
                    yield vacuumed
    replays = f"{run.data_root}/{REPLAYS}"
    vacuumed_replays = vacuum_unborn(replays, now=run.clock(), grace=GRACE, dry_run=dry_run)
    if vacuumed_replays.files:
        yield vacuumed_replays


@contextmanager
def _passing_over(version: str, passed_over: dict[str, str]) -> Iterator[None]:
    """Leave a table alone that is not free, or damaged, and note why: the others are collected all the same."""
    try:
        yield
    except (PromotionPendingError, TableLockedError, *_DAMAGED) as error:
        passed_over[version] = str(error)


@contextmanager
def _alone(run: RunContext, version: str, oldest: int) -> Iterator[None]:
    """Vacuum under the table's commit lock: files of a commit on its way are in no log yet."""
    with _turn(run, version):
        drop_old(run, version, oldest)
        yield


def _vacuum(path: str, oldest: int, now: datetime, *, dry_run: bool) -> Vacuumed:
    """Vacuum a table, which need not be there yet, up to the oldest version that is needed."""
    if head(path) < 0:
        return vacuum_unborn(path, now=now, grace=GRACE, dry_run=dry_run)
    return vacuum(path, keep_from=oldest, now=now, grace=GRACE, dry_run=dry_run)


def _piled_up(run: RunContext, passed_over: dict[str, str]) -> Iterator[Compacted]:
    """Name the tables in which small files have piled up."""
    for version in _tables_read(run):
        with _passing_over(version, passed_over):
            compacted = what_to_compact(run.store.versions.version_path(version))
            if compacted.files:
                yield compacted


def _compacted(run: RunContext, passed_over: dict[str, str]) -> Iterator[Compacted]:
    """Join files before the lock is taken; where one of them has gone by then, the next time.

    What lay there for longer than the grace another collection may be about to delete.
    """
    for version in _tables_read(run):
        path, since = run.store.versions.version_path(version), run.clock()
        with (
            _passing_over(version, passed_over),
            suppress(CommitConflictError),
            joined_files(path) as joined,
        ):
            if not joined.instead_of:
                continue
            with _turn(run, version) as lock:
                if run.clock() - since >= GRACE:
                    continue
                done = joined.commit(app_id=version, token=lock.token)
                refuse_foreign_commits(run, version, done.delta_version)
                describe_head(run, version, done.delta_version)
                run.store.locks.follow_head(lock, done.delta_version, run.clock())
            yield Compacted(path, len(joined.instead_of), len(joined.written.files))


def _tables_read(run: RunContext) -> list[str]:
    """Name the versions that environments read and of whose tables the state knows."""
    read = {at.version for at in _pointers(run)}
    return sorted(version for version in read if run.store.versions.known_head(version) > ABSENT)


@contextmanager
def _turn(run: RunContext, version: str) -> Iterator[CommitLock]:
    with (
        renewing_claims(run.store, run.run_id),
        reconciled(run, take(run, version, run.run_id)) as lock,
    ):
        yield lock


def _oldest_needed(run: RunContext, promise: timedelta) -> dict[str, int]:
    """Give the oldest pin that is needed, by version that some environment reads."""
    pointed = _pointers(run)
    promised = [
        at
        for move in run.store.history.moves_to_keep(promise)
        for at in (move.old, move.new)
        if at is not None
    ]
    read = dict(_pins(pointed))
    needed: dict[str, int] = {}
    for version, pin in (*_pins(pointed), *_pins(promised)):
        if version in read:
            needed[version] = min(pin, needed.get(version, pin))
    return needed


def _pointers(run: RunContext) -> list[Pointer]:
    """Read the pointers of every environment."""
    environments = run.store.environments
    return [
        at
        for each in environments.by_name()
        for at in environments.own_pointers(each.name).values()
    ]


def _pins(pointers: Iterable[Pointer]) -> Iterator[tuple[str, int]]:
    return ((layer.version, layer.delta_version) for at in pointers for layer in at.layers)
