"""Versions that are not needed any more, and their deletion."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.state import limits, sources
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.claims import abandon
from backfill_assets.state.moves import all_moves, moves_to_keep
from backfill_assets.state.pointers import all_pointers
from backfill_assets.state.promotions import open_intents
from backfill_assets.state.rows import read_as
from backfill_assets.state.tables import (
    CLAIMS,
    COMMIT_LOCKS,
    ICEBERG_ENTRIES,
    OWED,
    POINTERS,
    READY_RECORDS,
    SNAPSHOTS,
    VERSIONS,
)
from backfill_assets.state.texts import drop_unnamed
from backfill_assets.state.versions import owner

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from backfill_assets.state.database import Database


class VersionNeededError(BackfillAssetsError):
    """A version can't be deleted: it is needed."""

    def __init__(self, version: str, why: str) -> None:
        self.version = version
        super().__init__(
            f"the table of version '{version}' stays: {why}. Only a table that no pointer, promise, claim or "
            "open promotion needs is deleted"
        )


@dataclass(frozen=True, slots=True)
class Collectable:
    """A version that is not needed any more.

    Attributes:
        version: its id.
        model: of which model.
        path: where its table lies.
        made_by: the plan that made it; None if no plan did.
    """

    version: str
    model: str
    path: str
    made_by: str | None


@dataclass(frozen=True, slots=True)
class _Needs:
    """For how long a pointer move, and since when a claim's heartbeat or a pointer's leaving keeps a version."""

    now: datetime
    promise: timedelta
    heard_after: datetime
    left_after: datetime


class Collection(Aggregate[D]):
    """Versions that are not needed any more, and their deletion.

    Each method is one transaction.
    """

    def collectable_versions(
        self, promise: timedelta, grace: timedelta = timedelta(0)
    ) -> list[Collectable]:
        """Read the versions that no pointer, promise, claim, open intent or reader needs.

        Args:
            promise: how long after a pointer's move the way back is kept open, unless more was promised then.
            grace: how long after a pointer left a table readers may still use it.
        """
        needs = self._needs(self._clock(), promise, grace)

        def work(connection: sa.Connection) -> list[Collectable]:
            needed = _needed(connection, needs)
            rows = connection.execute(sa.select(VERSIONS).order_by(VERSIONS.c.version))
            return [
                read_as(Collectable, row, path=self.located(row.path))
                for row in rows
                if row.version not in needed
            ]

        return self._database.read(work)

    def mark_collecting(
        self: Collection[Database],
        version: str,
        promise: timedelta,
        grace: timedelta = timedelta(0),
    ) -> None:
        """Mark a version as being deleted: no pointer may move to it any more.

        Args:
            version: which.
            promise: how long after a pointer's move the way back is kept open, unless more was promised then.
            grace: how long after a pointer left a table readers may still use it.

        Raises:
            UnknownVersionError: there is none.
            VersionNeededError: it is needed by now.
        """
        now = self._clock()
        needs = self._needs(now, promise, grace)

        def work(connection: sa.Connection) -> None:
            why = _needed(connection, needs).get(version)
            if why is not None:
                raise VersionNeededError(version, why)
            owner(connection, version)
            marked = sa.update(VERSIONS).where(VERSIONS.c.version == version)
            connection.execute(marked.values(collecting_at=now))

        self._database.write(work)

    def forget_version(
        self: Collection[Database], version: str, grace: timedelta = timedelta(0)
    ) -> None:
        """Forget a version whose table is deleted: its records, owed marks, claims, lock, snapshots and itself.

        Its batches stay in the history, those that died as abandoned.

        Args:
            version: which.
            grace: how long a snapshot is kept that was saved and that nothing names yet: a pointer may be
                about to.

        Raises:
            VersionNeededError: it was not marked as collecting.
        """
        marked = sa.select(VERSIONS.c.collecting_at).where(VERSIONS.c.version == version)
        dead = sa.select(CLAIMS.c.batch_id).where(CLAIMS.c.version == version)
        now = self._clock()

        def work(connection: sa.Connection) -> None:
            row = connection.execute(marked).first()
            if row is None:
                return
            if row.collecting_at is None:
                raise VersionNeededError(version, "it was not marked as being deleted")
            abandon(connection, {*connection.execute(dead).scalars()}, now)
            for table in (READY_RECORDS, OWED, COMMIT_LOCKS, ICEBERG_ENTRIES, VERSIONS):
                connection.execute(sa.delete(table).where(table.c.version == version))
            _drop_snapshots(connection, version, now - grace)
            drop_unnamed(connection)

        self._database.write(work)

    def forget_remains(self: Collection[Database], declared: Iterable[str]) -> None:
        """Forget what nothing asks for any more: waiters that died, limits of plans that ended, looks at sources.

        Args:
            declared: the sources that are declared: looks at them are kept, and at those that a batch has read.
        """
        sources_kept = {*declared}

        def work(connection: sa.Connection) -> None:
            limits.forget_silent(connection, self._clock() - self._lease - limits.KEEPS_ITS_TURN)
            limits.forget_over(connection)
            sources.forget_unread(connection, sources_kept)

        self._database.write(work)

    def _needs(self, now: datetime, promise: timedelta, grace: timedelta) -> _Needs:
        return _Needs(now, promise, now - self._lease, now - grace)


def _drop_snapshots(connection: sa.Connection, version: str, saved_until: datetime) -> None:
    """Drop the snapshots that were made for a version, but for those that run in another one."""
    made = sa.select(SNAPSHOTS.c.fingerprint).where(
        SNAPSHOTS.c.version == version, SNAPSHOTS.c.saved_at <= saved_until
    )
    fingerprints = {*connection.execute(made).scalars()}
    if not fingerprints:
        return  # the moves below are the whole history of the state
    standing = {*connection.execute(sa.select(VERSIONS.c.version)).scalars()}
    running = {
        *connection.execute(sa.select(POINTERS.c.fingerprint)).scalars(),
        *connection.execute(sa.select(READY_RECORDS.c.fingerprint).distinct()).scalars(),
        *(
            at.fingerprint
            for each in all_moves(connection)
            for at in (each.old, each.new)
            if at is not None and at.version in standing
        ),
    }
    dropped = SNAPSHOTS.c.fingerprint.in_(fingerprints - running)
    connection.execute(sa.delete(SNAPSHOTS).where(dropped))


def _needed(connection: sa.Connection, needs: _Needs) -> dict[str, str]:
    """Say why each version that is kept is needed."""
    live = sa.select(CLAIMS).where(CLAIMS.c.heartbeat_at > needs.heard_after)
    recently_left = sa.select(VERSIONS.c.version).where(VERSIONS.c.left_at > needs.left_after)
    return {
        **dict.fromkeys(
            connection.execute(recently_left).scalars(),
            "the last reference to it ended a short while ago, and readers may still use it",
        ),
        **{row.version: f"run {row.run_id} is writing it" for row in connection.execute(live)},
        **{
            version: f"the {each.kind.value} of plan {each.plan_id} is not finished"
            for each in open_intents(connection)
            for version in each.versions
        },
        **{
            layer.version: f"plan {each.plan_id} may still be taken back"
            for each in moves_to_keep(connection, needs.now, needs.promise)
            for at in (each.old, each.new)
            if at is not None
            for layer in at.layers
        },
        **{
            layer.version: f"environment '{each.environment}' reads it"
            for each in all_pointers(connection)
            for layer in each.layers
        },
    }
