"""Recreate the state from the tables' own commits.

The counter's numbers of the records are lost, but their order is not: a commit pins its
inputs, so the record of (version U, delta k) came after every batch that pinned U below k and
before every one that pinned U at k or above. Any order that obeys this gives the same answers.

What plans built comes back as cells of their tables, and what a promotion copied in as cells of the
published one. What only the state knew does not: plans and their history, workspaces, environments
but prod, owed marks, pointer moves. So prod points where it built last, whatever a promotion that only
moved a pointer had made of it. A copy of a promotion that died half-way does not count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.errors import RequestError
from backfill_assets.snapshots.environment import PROD, Pointer
from backfill_assets.snapshots.publication import PROMOTED
from backfill_assets.state import counter, locks, pointers, versions
from backfill_assets.state.batch_rows import Ending
from backfill_assets.state.recording import apply_commit
from backfill_assets.state.tables import (
    BATCHES,
    OBSERVED_SOURCES,
    READY_RECORDS,
    SOURCE_CELLS,
    VERSIONS,
)
from backfill_assets.state.versions import NewVersion

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from backfill_assets.snapshots.batch import BatchCommit


_FILES_ASIDE = (
    "With nothing running, move the file aside together with its -wal and -shm, which may hold the last of it "
    "(keep all), then rebuild"
)
_OTHER_DATABASE = "Create another one, name it in BACKFILL_STATE_URL, then rebuild"


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """One batch's commit as a table's log shows it.

    Attributes:
        version: whose table.
        path: where it lies.
        delta_version: Delta's number of the commit.
        commit: what its `userMetadata` says.
        committed_at: when, by the log.
        bytes_written: how much, if the log says.
    """

    version: str
    path: str
    delta_version: int
    commit: BatchCommit
    committed_at: datetime | None = None
    bytes_written: int | None = None


@dataclass(frozen=True, slots=True)
class TableHead:
    """Where a table's log ends.

    Attributes:
        delta_version: of its last commit, which may be a fence and no batch.
        token: the largest `txnVersion` in the log.
    """

    delta_version: int
    token: int


def rebuild(
    connection: sa.Connection,
    commits: Iterable[LoggedCommit],
    heads: Mapping[str, TableHead],
    now: datetime,
) -> None:
    """Replay commits into an empty state.

    Args:
        connection: of the empty state.
        commits: every batch that the tables' logs hold, in any order.
        heads: where each log ends, by version; its last batch when it is not named.
        now: when this happens.

    Raises:
        RequestError: the state holds something.
    """
    _check_empty(connection)
    _forget_looks(connection)
    logged = sorted(commits, key=lambda each: (each.version, each.delta_version))
    ordered = list(_in_order(logged))
    opened = {each.commit.built_at: at for at, each in ordered if isinstance(each, _Opened)}
    records = [(at, each) for at, each in ordered if isinstance(each, LoggedCommit)]
    for pointer, path in _first_pointers(records):
        pointers.first_pointer(connection, pointer, path, now)
    for at, each in records:
        versions.ensure_version(connection, _version(each))
        commit = replace(each.commit, built_at=opened[each.commit.built_at])
        ending = Ending(each.delta_version, each.bytes_written, each.committed_at)
        apply_commit(connection, commit, ending, at)
    _restore_heads(connection, logged, heads, now)
    # Above what the logs name too, else the next rebuild would mix old numbers with new ones.
    numbers = (each.commit.built_at for each in logged)
    counter.set_number(connection, max((len(ordered), *numbers)))


def _version(logged: LoggedCommit) -> NewVersion:
    commit = logged.commit
    return NewVersion(logged.version, commit.model, logged.path, commit.environment, commit.plan_id)


@dataclass(frozen=True, slots=True)
class _Opened:
    """The moment when a commit's batch pinned its inputs."""

    commit: BatchCommit


def _in_order(logged: list[LoggedCommit]) -> Iterator[tuple[int, _Opened | LoggedCommit]]:
    """Number the opening and the record of every commit anew, from 1, in an order that obeys the pins.

    The copies of one publication count as built and recorded at one number, as its transaction had it,
    unless a batch read one of the tables before: it is put between.
    """
    pins = _pins(logged)
    events: list[tuple[tuple[int, int, str, int], _Opened | LoggedCommit]] = []
    for version, table in groupby(logged, key=lambda each: each.version):
        after, readers = 0, iter(pins.get(version, []))
        reader = next(readers, None)
        for each in table:
            while reader is not None and reader[0] < each.delta_version:
                after, reader = max(after, reader[1]), next(readers, None)
            after = max(after, each.commit.built_at)
            events.append(((after, 1, version, each.delta_version), each))
            opening = (each.commit.built_at, 0, version, each.delta_version)
            events.append((opening, _Opened(each.commit)))
    events.sort(key=lambda event: event[0])
    number = 0
    for (after, *_), event in events:
        if not _is_published_at(after, event):
            number += 1
        yield number, event


def _is_published_at(after: int, event: _Opened | LoggedCommit) -> bool:
    """Whether it is the record of a publication's copy that nothing keeps apart from its opening."""
    if isinstance(event, _Opened):
        return False
    return event.commit.reason == PROMOTED and event.commit.built_at == after


def _pins(logged: list[LoggedCommit]) -> dict[str, list[tuple[int, int]]]:
    """Collect the pins of each version: (delta_version, built_at), in order."""
    pins: dict[str, list[tuple[int, int]]] = {}
    for each in logged:
        for pin in each.commit.inputs:
            pins.setdefault(pin.version, []).append((pin.delta_version, each.commit.built_at))
    return {version: sorted(each) for version, each in pins.items()}


def _first_pointers(records: list[tuple[int, LoggedCommit]]) -> Iterator[tuple[Pointer, str]]:
    """Yield pointers to the versions built last and their paths, at no commit yet: the replay raises every pin."""
    last = {
        (each.commit.environment, each.commit.model): each
        for _, each in records
        if each.commit.environment == PROD  # whether another one was dropped, no log says
    }
    for (environment, model), each in last.items():
        pointer = Pointer(
            environment, model, each.commit.fingerprint, each.version, versions.NO_COMMIT
        )
        yield pointer, each.path


def _restore_heads(
    connection: sa.Connection,
    logged: list[LoggedCommit],
    heads: Mapping[str, TableHead],
    now: datetime,
) -> None:
    """Account for fences after the last batch, and keep the largest token of each log."""
    for version, table in groupby(logged, key=lambda each: each.version):
        listed = list(table)
        token = max(each.commit.token for each in listed)
        head = heads.get(version, TableHead(listed[-1].delta_version, token))
        versions.set_known_head(connection, version, head.delta_version)
        locks.keep_token(connection, version, max(token, head.token), now)


def _forget_looks(connection: sa.Connection) -> None:
    """Forget what was seen of sources before: what came between the batches and these looks would never be late."""
    for table in (OBSERVED_SOURCES, SOURCE_CELLS):
        connection.execute(sa.delete(table))


def _check_empty(connection: sa.Connection) -> None:
    for table in (VERSIONS, BATCHES, READY_RECORDS):
        if connection.execute(sa.select(table).limit(1)).first() is not None:
            raise RequestError(
                found="a state can only be rebuilt into an empty database, but this database holds "
                "versions, batches or ready records",
                do=_OTHER_DATABASE if connection.dialect.name != "sqlite" else _FILES_ASIDE,
            )
