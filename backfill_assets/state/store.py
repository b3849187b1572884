"""The store: an open state database with its aggregates.

`store.plans`, `store.batches`, `store.locks` and the others are one subject each; **a method of theirs
is one transaction**. See `state.aggregate`.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

from backfill_assets.state import counter, rebuild
from backfill_assets.state.aggregate import Aggregate, D
from backfill_assets.state.approvals import Approvals
from backfill_assets.state.batches import Batches
from backfill_assets.state.checks import Checks
from backfill_assets.state.collection import Collection
from backfill_assets.state.database import Database, ReadDatabase, sqlite_file
from backfill_assets.state.environments import Environments
from backfill_assets.state.evidence import EvidenceRecords
from backfill_assets.state.failed_starts import FailedStarts
from backfill_assets.state.history import History
from backfill_assets.state.holds import Holds
from backfill_assets.state.iceberg import Iceberg
from backfill_assets.state.limits import Limits
from backfill_assets.state.locks import Locks
from backfill_assets.state.migrate import is_empty, migrate
from backfill_assets.state.notices import Notices
from backfill_assets.state.plans import Plans
from backfill_assets.state.publications import Publications
from backfill_assets.state.published_audits import PublishedAudits
from backfill_assets.state.queue import Queue
from backfill_assets.state.results import Results
from backfill_assets.state.snapshots import Snapshots
from backfill_assets.state.sources import Sources
from backfill_assets.state.versions import Versions
from backfill_assets.state.views import Views

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

    from sqlalchemy import Connection

    from backfill_assets.state.rebuild import LoggedCommit, TableHead


class Aggregates(Aggregate[D]):
    """The aggregates of one state database, which a `Store` writes too and a `StateReader` doesn't."""

    def __init__(
        self,
        database: D,
        clock: Callable[[], datetime],
        lease: timedelta,
        data_root: str | None = None,
    ) -> None:
        super().__init__(database, clock, lease, data_root)
        opened = (database, clock, lease, data_root)
        self.plans = Plans(*opened)
        self.approvals = Approvals(*opened)
        self.environments = Environments(*opened)
        self.batches = Batches(*opened)
        self.failed_starts = FailedStarts(*opened)
        self.locks = Locks(*opened)
        self.publications = Publications(*opened)
        self.history = History(*opened)
        self.views = Views(*opened)
        self.versions = Versions(*opened)
        self.collection = Collection(*opened)
        self.snapshots = Snapshots(*opened)
        self.sources = Sources(*opened)
        self.limits = Limits(*opened)
        self.queue = Queue(*opened)
        self.iceberg = Iceberg(*opened)
        self.evidence = EvidenceRecords(*opened)
        self.checks = Checks(*opened)
        self.holds = Holds(*opened)
        self.notices = Notices(*opened)
        self.results = Results(*opened)
        self.published_audits = PublishedAudits(*opened)


class StateReader(Aggregates[ReadDatabase]):
    """A state database that can be read, and not written."""


class Store(Aggregates[Database]):
    """One state database, open. Threads may share a store; processes open one each.

    Any method of its aggregates raises `StateBusyError` when others keep the database locked for too
    long, and `StateUnavailableError` when it can't be read or written.
    """

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Callable[[], datetime],
        lease_seconds: float = 60,
        busy_seconds: float = 30,
        data_root: str | None = None,
    ) -> Self:
        """Open a state database, creating or upgrading its tables.

        Args:
            url: ``sqlite:////absolute/path/state.db`` or ``postgresql://user@host/name``.
            clock: tells the time, aware.
            lease_seconds: how long a claim or lock outlives its last heartbeat.
            busy_seconds: how long to wait for others that have the database locked.
            data_root: folder or URI under which tables lie: where they lie beneath it is kept relative
                to it. None: every path is kept as it is given.

        Raises:
            DeclarationError: the URL names neither.
            RequestError: a newer release has opened it, or it is another program's.
            RequestError: it is a new database of PostgreSQL whose encoding is not UTF-8.
            StateUnavailableError: it can't be opened.
            StateBusyError: others kept it locked.
            RequestError: it names tables by absolute URIs that may be those of a copy.
        """
        database = Database.open(url, busy_seconds=busy_seconds)
        try:
            migrate(database, data_root)
        except BaseException:
            database.close()
            raise
        return cls(database, clock, timedelta(seconds=lease_seconds), data_root)

    @classmethod
    def absent(cls, url: str, *, busy_seconds: float = 30) -> str | None:
        """Name the place where `open` would begin a new state; None where there is one. Nothing is made.

        Args:
            url: as of `open`.
            busy_seconds: how long to wait for others that have the database locked.

        Raises:
            DeclarationError: the URL names neither an SQLite file nor PostgreSQL.
            StateUnavailableError: the database can't be opened.
        """
        file = sqlite_file(url)
        if file is not None:
            return None if _holds_something(file) else str(file)
        database = Database.open(url, busy_seconds=busy_seconds)
        try:
            return database.where if is_empty(database) else None
        finally:
            database.close()

    @classmethod
    @contextmanager
    def empty(
        cls,
        *,
        clock: Callable[[], datetime],
        lease_seconds: float = 60,
        data_root: str | None = None,
    ) -> Generator[Self]:
        """Open a state that holds nothing, for those who only look: nothing of it stays.

        Args:
            clock: as of `open`.
            lease_seconds: as of `open`.
            data_root: as of `open`.
        """
        with (
            TemporaryDirectory(prefix="backfill-") as folder,
            cls.open(
                f"sqlite:///{folder}/state.db",
                clock=clock,
                lease_seconds=lease_seconds,
                data_root=data_root,
            ) as store,
        ):
            yield store

    @property
    def lease_seconds(self) -> float:
        """How long a claim or lock outlives its last heartbeat, in seconds."""
        return self._lease.total_seconds()

    def reading(self) -> StateReader:
        """Give the same state to a reader who may not write it."""
        return StateReader(ReadDatabase(self._database), self._clock, self._lease, self._data_root)

    def close(self) -> None:
        """Close every connection."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def rebuild(
        self,
        commits: Iterable[LoggedCommit],
        *,
        heads: Mapping[str, TableHead] | None = None,
        seen: int = 0,
    ) -> None:
        """Replay the tables' own commits into this state, which must be empty.

        Args:
            commits: every batch that the tables' logs hold, in any order.
            heads: where each log ends, by version; its last batch when it is not named.
            seen: the largest number that any log names, also of commits that do not count.

        Raises:
            RequestError: the state holds something.
        """
        now = self._clock()
        listed = [replace(commit, path=self.place(commit.path)) for commit in commits]

        def work(connection: Connection) -> None:
            rebuild.rebuild(connection, listed, heads or {}, now)
            counter.rise_to(connection, seen)

        self._database.write(work)


def _holds_something(file: Path) -> bool:
    try:
        return file.stat().st_size > 0
    except FileNotFoundError:
        return False
    except OSError:  # opening it says why it can't be used
        return True
