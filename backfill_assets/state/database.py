"""The database under the state: its transactions, and what each of its failures means.

There is one writer at a time: `BEGIN IMMEDIATE` in SQLite, the counter's row locked first in
PostgreSQL. So a transaction sees everything that was written before it, and the order of the
counter is the order of commits.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, TypeVarTuple

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, TimeoutError as PoolTimeoutError
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random_exponential

from backfill_assets.errors import BackfillAssetsError, DeclarationError
from backfill_assets.state.database_failures import (
    StateBusyError,
    StateCommitUnknownError,
    StateUnavailableError,
    is_away,
    is_busy,
    message,
    why_unavailable,
)
from backfill_assets.state.tables import COUNTER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def _state_url(
    url: str, wrong: str = "is neither an SQLite file nor PostgreSQL"
) -> DeclarationError:
    return DeclarationError(
        found=f"state URL '{_without_secrets(url)}' {wrong}",
        expected="'sqlite:////absolute/path/state.db' or 'postgresql://user@host/name'",
    )


class _LostInCommitError(Exception):
    """Not tried again: the commit may have arrived."""


class Database:
    """Runs work in transactions; tries again while others hold the lock, or the server is away."""

    def __init__(self, url: sa.URL, busy_seconds: float) -> None:
        self.where = url.database or "" if _is_sqlite(url) else _shown(url)
        self._busy_seconds = busy_seconds
        self._engine = _engine(url, busy_seconds)
        self._asker = self._engine.execution_options(**_asking(url))
        self._reader = self._engine.execution_options(**_reading(url))
        self._writer = self._engine.execution_options(**_writing(url))
        self._retrying = Retrying(
            retry=retry_if_exception(lambda error: is_busy(error) or is_away(error)),
            stop=stop_after_delay(busy_seconds),
            wait=wait_random_exponential(multiplier=0.05, max=1),
            reraise=True,
        )

    @classmethod
    def open(cls, url: str, *, busy_seconds: float) -> Self:
        """Open the database, and create an SQLite file (mode 600) that is not there yet.

        Raises:
            DeclarationError: neither an SQLite file nor PostgreSQL.
            StateUnavailableError: it can't be opened, or is no database.
        """
        parsed = _parsed(url)
        if not _is_sqlite(parsed):
            return cls(parsed, busy_seconds)
        _create_private(Path(parsed.database or ""))
        database = cls(parsed, busy_seconds)
        try:
            database._turn_wal_on()
        except BackfillAssetsError:
            database.close()
            raise
        return database

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``postgresql``."""
        return self._engine.dialect.name

    def close(self) -> None:
        """Close every connection."""
        self._engine.dispose()

    def ask(self, query: sa.Select[*tuple[Any, ...]]) -> Sequence[sa.Row[Any]]:
        """Read the rows of one query: it has one consistent picture of the state without a transaction.

        A server that is far away is so waited for once, and not for the beginning and the end as well.
        """

        def rows() -> Sequence[sa.Row[Any]]:
            with self._asker.connect() as connection:
                return connection.execute(query).all()

        return self._with_retries(rows)

    def read(self, work: Callable[[sa.Connection, *Ts], T], *args: *Ts) -> T:
        """Run work that only reads, with these arguments, on one consistent picture of the state."""
        return self._with_retries(
            lambda: self._in_transaction(self._reader, lambda connection: work(connection, *args))
        )

    def write(self, work: Callable[[sa.Connection, *Ts], T], *args: *Ts) -> T:
        """Run work that writes, with these arguments: all of it or nothing, and alone.

        Raises:
            StateBusyError: others held the lock for too long.
            StateUnavailableError: the database can't be written.
        """
        lock = sa.select(COUNTER).with_for_update()
        return self._alone(lock, lambda connection: work(connection, *args))

    def change_schema(self, work: Callable[[sa.Connection], T]) -> T:
        """Run work that changes tables, alone: there may be no counter to lock yet."""
        return self._alone(sa.select(sa.func.pg_advisory_xact_lock(_SCHEMA_LOCK)), work)

    def _alone(self, lock: sa.Select[*tuple[Any, ...]], work: Callable[[sa.Connection], T]) -> T:
        """Run work while no other writes: SQLite has one writer at a time, PostgreSQL a lock."""

        def alone(connection: sa.Connection) -> T:
            if self.dialect != "sqlite":
                connection.execute(lock)
            return work(connection)

        return self._with_retries(lambda: self._in_transaction(self._writer, alone))

    def _in_transaction(self, engine: sa.Engine, work: Callable[[sa.Connection], T]) -> T:
        with engine.connect() as connection:
            with connection.begin() as transaction:
                done = work(connection)
                try:
                    transaction.commit()
                except DBAPIError as error:
                    if is_away(error):
                        raise _LostInCommitError from error
                    raise
            return done

    def _with_retries(self, attempt: Callable[[], T]) -> T:
        try:
            return self._retrying(attempt)
        except _LostInCommitError as error:
            raise StateCommitUnknownError(self.where, message(error.__cause__)) from error
        except (DBAPIError, PoolTimeoutError) as error:
            if is_busy(error):
                raise StateBusyError(self.where, self._busy_seconds) from error
            reason = why_unavailable(error)
            if reason is None:
                raise
            raise StateUnavailableError(self.where, reason) from error

    def _turn_wal_on(self) -> None:
        def mode() -> str:
            autocommit = self._engine.execution_options(begin="")
            with autocommit.connect() as connection:
                journal_mode = connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()
                if journal_mode != "wal":
                    journal_mode = connection.exec_driver_sql(
                        "PRAGMA journal_mode=WAL"
                    ).scalar_one()
                return str(journal_mode)

        journal_mode = self._with_retries(mode)
        if journal_mode != "wal":
            raise StateUnavailableError(
                self.where,
                f"its disk can't do write-ahead logging (journal mode is '{journal_mode}')",
            )


def sqlite_file(url: str) -> Path | None:
    """Give the SQLite file that a URL names; None for PostgreSQL.

    Raises:
        DeclarationError: neither an SQLite file nor PostgreSQL.
    """
    parsed = _parsed(url)
    return Path(parsed.database or "") if _is_sqlite(parsed) else None


class ReadDatabase:
    """A database that can only be read."""

    def __init__(self, database: Database) -> None:
        self._ask, self._read = database.ask, database.read

    def ask(self, query: sa.Select[*tuple[Any, ...]]) -> Sequence[sa.Row[Any]]:
        """Read the rows of one query, which has one consistent picture of the state."""
        return self._ask(query)

    def read(self, work: Callable[[sa.Connection, *Ts], T], *args: *Ts) -> T:
        """Run work that only reads, with these arguments, on one consistent picture of the state."""
        return self._read(work, *args)


_SCHEMA_LOCK = 5_872_016  # any number that only we lock


def _parsed(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except ArgumentError:
        raise _state_url(url) from None
    except ValueError:
        raise _state_url(url, "has a port that is no number") from None
    backend = parsed.get_backend_name()
    if backend in ("postgresql", "postgres"):
        if "@" in (parsed.host or ""):
            raise _state_url(url, "has an @ too many: one of a password is written as %40")
        return parsed.set(drivername="postgresql+psycopg")
    in_memory = parsed.database in (None, "", ":memory:")
    if backend != "sqlite" or in_memory or parsed.host:
        raise _state_url(url)
    if "?" in url:
        why = "has options, which an SQLite file takes none of; a ? of a path is written as %3F"
        raise _state_url(url, why)
    return parsed.set(drivername="sqlite")


def _shown(url: sa.URL) -> str:
    return _without_secrets(url.render_as_string(hide_password=True))


def _without_secrets(url: str) -> str:
    """Hide every password of a URL, also of one that can't be read as a URL."""
    hidden = re.sub(r":(?!//).*@", ":***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", hidden, flags=re.IGNORECASE)


def _is_sqlite(url: sa.URL) -> bool:
    return url.get_backend_name() == "sqlite"


def _create_private(path: Path) -> None:
    """Create the file for its owner alone; SQLite gives its side files the same mode."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise StateUnavailableError(str(path), "it is a folder")
        path.touch(mode=0o600, exist_ok=True)
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
    except OSError as error:
        raise StateUnavailableError(str(path), error.strerror or str(error)) from error


def _engine(url: sa.URL, busy_seconds: float) -> sa.Engine:
    if not _is_sqlite(url):
        try:
            # A connection that broke while it was idle is found by the first statement, which is then tried again.
            return sa.create_engine(_with_ours(url, busy_seconds))
        except ImportError as error:
            raise DeclarationError(
                found=f"state URL '{_shown(url)}' needs psycopg, which can't be imported: {error}",
                do="install this package with its extra `postgres`",
            ) from error
    engine = sa.create_engine(url, connect_args={"timeout": min(5.0, busy_seconds)})
    event.listen(engine, "connect", _disable_driver_transactions)
    event.listen(engine, "begin", _begin)
    return engine


_NOTICES_SILENCE = {
    "connect_timeout": "10",
    "tcp_user_timeout": "15000",
    "keepalives_idle": "5",
    "keepalives_interval": "5",
    "keepalives_count": "3",
}
"""How libpq finds out that a server's machine is gone without a word: by itself TCP waits for many minutes."""


def _with_ours(url: sa.URL, busy_seconds: float) -> sa.URL:
    """Add what we ask of a connection to what the URL does."""
    given = url.query.get("options", ())
    options = (given,) if isinstance(given, str) else given
    ours = f"-c lock_timeout={max(1, int(busy_seconds * 1000))}"
    asked = {
        **_NOTICES_SILENCE,
        **url.query,
        "options": " ".join((*options, ours)),
        "client_encoding": "utf8",  # whatever PGCLIENTENCODING says: texts are of any language
    }
    return url.set(query=asked)


def _asking(url: sa.URL) -> dict[str, Any]:
    return {} if _is_sqlite(url) else {"isolation_level": "AUTOCOMMIT"}


def _reading(url: sa.URL) -> dict[str, Any]:
    if _is_sqlite(url):
        return {"begin": "BEGIN"}
    return {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}


def _writing(url: sa.URL) -> dict[str, Any]:
    if _is_sqlite(url):
        return {"begin": "BEGIN IMMEDIATE"}
    # Whatever the server's default: a writer that has waited for the lock sees what was written meanwhile.
    return {"isolation_level": "READ COMMITTED"}


def _disable_driver_transactions(connection: Any, _record: object) -> None:  # noqa: ANN401 - a driver's own
    """Keep sqlite3 from opening its own transactions, which begin only before a write."""
    connection.isolation_level = None


def _begin(connection: sa.Connection) -> None:
    statement = connection.get_execution_options().get("begin")
    if statement:
        connection.exec_driver_sql(statement)
