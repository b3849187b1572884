"""Versions: the physical tables, who alone writes each, and how far the state knows its log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.intervals.interval import instant_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.snapshots.ready import ReadyRecord
from backfill_assets.state import ready
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.cells import cell_of, reached
from backfill_assets.state.ready import valid_at
from backfill_assets.state.rows import read_as, values_of
from backfill_assets.state.tables import BATCHES, READY_RECORDS, SNAPSHOTS, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content

_RECORDS = READY_RECORDS.c
_NAMED = sa.select(VERSIONS).where(VERSIONS.c.version == sa.bindparam("named"))
NO_COMMIT = -1
"""The pin, and the head, of a table that has no commit yet."""


class UnknownVersionError(BackfillAssetsError):
    """No table of this version is known."""

    def __init__(self, version: str) -> None:
        self.version = version
        super().__init__(
            f"version '{version}' is not in the state; expected one that a pointer named before. "
            "Run the model once, or `backfill state rebuild`"
        )


class TableLockedError(BackfillAssetsError):
    """Another run is committing to the table."""

    def __init__(self, version: str, holder: str, since: datetime) -> None:
        self.version, self.holder, self.since = version, holder, since
        super().__init__(
            f"table {version} is being committed to by {holder} since {since.isoformat()}; "
            "commits to one table run one after another. Wait and try again; if that process is "
            "dead, the lock expires after the lease"
        )


class VersionCollectingError(BackfillAssetsError):
    """A version's table is being deleted."""

    def __init__(self, version: str, since: datetime) -> None:
        self.version = version
        super().__init__(
            f"the table of version '{version}' is being deleted since {since.isoformat()}: nothing "
            "may point there any more. Let `backfill gc` finish, then try again: the table is built anew"
        )


def owned_elsewhere(version: str, owner: str, environment: str) -> RequestError:
    """Name the environment that alone writes the version."""
    return RequestError(
        found=f"version '{version}' belongs to '{owner}', which alone writes it; '{environment}' "
        "may only read it",
        do=f"wait for '{owner}', or promote, abandon or undo what holds it",
    )


@dataclass(frozen=True, slots=True)
class Maker:
    """Which batch made a ready cell, by which snapshot and why.

    Attributes:
        cell: the cell.
        fingerprint: the snapshot.
        plan_id: the plan that it served; None for none, and where the batch is not known.
        reason: why it ran; empty where the batch is not known.
        started_at: when it was opened; None where the batch is not known.
    """

    cell: Interval
    fingerprint: str
    plan_id: str | None
    reason: str
    started_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version to be known from now on.

    Attributes:
        version: its id.
        model: of which model.
        path: the place where its table lies, or will (see `snapshots.places`).
        owner: who alone writes it.
        made_by: the plan that makes it; None for none.
    """

    version: str
    model: str
    path: str
    owner: str | None
    made_by: str | None = None


class Versions(Aggregate[D]):
    """Physical tables: where each lies, who writes it, and which of its cells are ready.

    Each method is one transaction.
    """

    def owner(self, version: str) -> str | None:
        """Read which environment alone writes a version; None: the environment that opens it next.

        Raises:
            UnknownVersionError: there is none.
        """
        return self._known(version).owner

    def owners(self, versions: Collection[str]) -> dict[str, str]:
        """Read which environment alone writes each of these versions, without those that none writes yet, or that are unknown."""
        known = VERSIONS.c
        query = sa.select(known.version, known.owner).where(
            known.version.in_(sorted(versions)), known.owner.is_not(None)
        )
        return {row.version: row.owner for row in self._rows(query)}

    def version_path(self, version: str) -> str:
        """Read where a version's table lies; `UnknownVersionError` when there is none."""
        return self.located(self._known(version).path)

    def model(self, version: str) -> str:
        """Read whose table a version is; `UnknownVersionError` when there is none."""
        return self._known(version).model

    def is_known(self, version: str) -> bool:
        """Whether the state still knows a version; not one whose table was collected."""
        return self._row(_named(version)) is not None

    def known_head(self, version: str) -> int:
        """Read the last delta_version that the state accounts for; -1 before the first commit."""
        return self._known(version).known_head

    def _known(self, version: str) -> sa.Row[Any]:
        return _refuse_unknown(self._row(_named(version)), version)

    def ready_records(self, version: str, at: int | None = None) -> list[ReadyRecord]:
        """Read a version's records that are valid at a delta_version; None is the latest."""
        return self._database.read(ready.ready_records, version, at)

    def snapshots(self) -> dict[str, str]:
        """Read by version, of those that hold or held cells, the fingerprint of a snapshot that made some."""
        made = (
            sa.select(_RECORDS.fingerprint)
            .join(SNAPSHOTS, SNAPSHOTS.c.fingerprint == _RECORDS.fingerprint)
            .where(_RECORDS.version == VERSIONS.c.version)
            .limit(1)
            .scalar_subquery()
        )
        rows = self._rows(sa.select(VERSIONS.c.version, made.label("made")))
        return {row.version: row.made for row in rows if row.made is not None}

    def records_ever(self, version: str, cells: IntervalSet) -> list[ReadyRecord]:
        """Read every record that reaches into these cells in a version, replaced ones too, the earliest first.

        There is none of a version that was collected.
        """
        if not cells:
            return []
        query = sa.select(READY_RECORDS).where(
            _RECORDS.version == version, reached(READY_RECORDS, cells)
        )
        return [
            read_as(ReadyRecord, row, cell=cell_of(row))
            for row in self._rows(query.order_by(_RECORDS.valid_from, _RECORDS.starts))
            if cells.within(row.starts, row.ends)
        ]

    def built_by(self, version: str, root_id: str, at: int | None = None) -> IntervalSet:
        """Read which of the cells that are ready at a delta_version a root run or backfill built; None is the latest."""
        query = (
            sa.select(_RECORDS.starts, _RECORDS.ends)
            .join(BATCHES, BATCHES.c.batch_id == _RECORDS.batch_id)
            .where(_RECORDS.version == version, valid_at(at), BATCHES.c.root_id == root_id)
        )
        return IntervalSet.of_pairs((row.starts, row.ends) for row in self._rows(query))

    def makers(self, version: str, at: int) -> list[Maker]:
        """Read what made each cell that is ready at a delta_version, by cell."""
        own = (_RECORDS.starts, _RECORDS.ends, _RECORDS.fingerprint)
        of_batch = (BATCHES.c.plan_id, BATCHES.c.reason, BATCHES.c.started_at)
        query = (
            sa.select(*own, *of_batch)
            .outerjoin(BATCHES, BATCHES.c.batch_id == _RECORDS.batch_id)
            .where(_RECORDS.version == version, valid_at(at))
            .order_by(_RECORDS.starts)
        )
        return [
            read_as(Maker, row, cell=cell_of(row), reason=row.reason or "")
            for row in self._rows(query)
        ]

    def watermark(self, version: str) -> datetime | None:
        """Read where the last ready cell of a version ends."""
        last = sa.select(sa.func.max(_RECORDS.ends).label("ends"))
        row = self._row(last.where(_RECORDS.version == version, valid_at(None)))
        return None if row is None or row.ends is None else instant_of(row.ends)

    def held_contents(
        self, version: str, cells: IntervalSet, at: int | None = None
    ) -> dict[Interval, Content]:
        """Read what a version's own table holds in those of these cells that are ready.

        Args:
            version: whose table.
            cells: which cells.
            at: the delta_version; None is the latest.
        """
        return self._database.read(ready.contents, version, at, cells)


def ensure_version(connection: sa.Connection, wanted: NewVersion) -> None:
    """Create a version that has no commit yet, if it is not there; one that is stays as it is.

    Raises:
        VersionCollectingError: it is being deleted.
    """
    row = _version(connection, wanted.version)
    if row is None:
        values = {**values_of(wanted), "known_head": NO_COMMIT}
        connection.execute(sa.insert(VERSIONS).values(values))
    elif row.collecting_at is not None:
        raise VersionCollectingError(wanted.version, row.collecting_at)


def check_kept(connection: sa.Connection, version: str) -> None:
    """Make sure that a pointer may move to a version.

    Raises:
        UnknownVersionError: no such version.
        VersionCollectingError: it is being deleted.
    """
    row = _known_version(connection, version)
    if row.collecting_at is not None:
        raise VersionCollectingError(version, row.collecting_at)


def place(connection: sa.Connection, version: str) -> str:
    """Read the place where a version's table lies (see `snapshots.places`).

    Raises:
        UnknownVersionError: no such version.
    """
    return _known_version(connection, version).path


def owner(connection: sa.Connection, version: str) -> str | None:
    """Read which environment alone writes a version; None: the environment that opens it next.

    Raises:
        UnknownVersionError: no such version.
    """
    return _known_version(connection, version).owner


def find_owner(connection: sa.Connection, version: str) -> str | None:
    """Read who alone writes a version; None when none does, or the version is unknown."""
    row = _version(connection, version)
    return None if row is None else row.owner


def set_owner(connection: sa.Connection, version: str, environment: str) -> None:
    """Let an environment alone write a version."""
    owned = sa.update(VERSIONS).where(VERSIONS.c.version == version)
    connection.execute(owned.values(owner=environment))


def known_head(connection: sa.Connection, version: str) -> int:
    """Read the last delta_version that the state has accounted for.

    Raises:
        UnknownVersionError: no such version.
    """
    return _known_version(connection, version).known_head


def set_known_head(connection: sa.Connection, version: str, delta_version: int) -> None:
    """Account for a table's commits up to this one."""
    head = sa.update(VERSIONS).where(VERSIONS.c.version == version)
    connection.execute(head.values(known_head=delta_version))


def _named(version: str) -> sa.Select[Any]:
    return _NAMED.params(named=version)


def _version(connection: sa.Connection, version: str) -> sa.Row[Any] | None:
    return connection.execute(_named(version)).first()


def _known_version(connection: sa.Connection, version: str) -> sa.Row[Any]:
    return _refuse_unknown(_version(connection, version), version)


def _refuse_unknown(row: sa.Row[Any] | None, version: str) -> sa.Row[Any]:
    if row is None:
        raise UnknownVersionError(version)
    return row
