"""What a failure of the database under the state means, by the codes of its drivers."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError, TimeoutError as PoolTimeoutError

from backfill_assets.errors import BackfillAssetsError

_SQLITE_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_SQLITE_UNAVAILABLE = {
    sqlite3.SQLITE_PERM: "it may not be written",
    sqlite3.SQLITE_READONLY: "it is read-only",
    sqlite3.SQLITE_IOERR: "its disk failed to read or write",
    sqlite3.SQLITE_CORRUPT: "it is corrupt",
    sqlite3.SQLITE_FULL: "its disk is full",
    sqlite3.SQLITE_CANTOPEN: "it can't be opened or created",
    sqlite3.SQLITE_NOTADB: "it is corrupt, or no SQLite database",
}
_PRIMARY_CODE = 0xFF
# lock_not_available, serialization_failure, deadlock_detected
_POSTGRES_BUSY = {"55P03", "40001", "40P01"}
# lost or refused connection, shutdown, crash, start-up
_POSTGRES_AWAY = ("08", "57P01", "57P02", "57P03")
# When a connection is refused, psycopg gives no SQLSTATE, only the server's message.
_REFUSED_FOR_GOOD = (
    "authentication failed",
    "does not exist",
    "not permitted",
    "no pg_hba.conf entry",
)
# connection, authorization, unknown database, read-only, resources (disk full), shutdown; no right, schema or
# table; a timeout that the server has set; a text that its encoding does not have
_POSTGRES_UNAVAILABLE = (
    "08", "28", "3D", "25006", "53", "57P", "58", "42501", "3F", "42P01", "57014", "25P", "22P05",
)  # fmt: skip


_OF_A_FILE = (
    "Give it a writable local disk with free space, or point the state URL elsewhere; if the file is "
    "damaged, move it aside with its -wal and -shm, and run `backfill state rebuild`"
)
_OF_A_SERVER = (
    "Check that the server runs, host, port, user, database and options in the state URL, and what the user "
    "may do there; then run the same command again"
)


class StateBusyError(BackfillAssetsError):
    """Others kept the state locked for longer than we wait."""

    def __init__(self, where: str, seconds: float) -> None:
        self.where = where
        super().__init__(
            f"the state database {where} stayed locked by others for {seconds:g} s; nothing was "
            "written. Run again; if it persists, look for a stopped process that has it open"
        )


class StateUnavailableError(BackfillAssetsError):
    """The state database can't be read or written at all."""

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        remedy = _OF_A_SERVER if where.startswith("postgresql") else _OF_A_FILE
        super().__init__(
            f"the state database {where} can't be used: {reason.rstrip('.?!')}. Nothing was written and "
            f"published data is unchanged. {remedy}"
        )


class StateCommitUnknownError(StateUnavailableError):
    """The connection broke while a transaction was being committed."""

    def __init__(self, where: str, reason: str) -> None:
        self.where = where
        BackfillAssetsError.__init__(
            self,
            f"the state database {where} was lost while a step was being committed: {reason}. "
            "It is not known whether that step was recorded. Run again: its claims expire by "
            "themselves, and its commits to a table are found in the table's log",
        )


def is_busy(error: BaseException) -> bool:
    """Say whether others hold the lock, so that it will be free soon."""
    if isinstance(error, PoolTimeoutError):
        return True
    if not isinstance(error, DBAPIError):
        return False
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & _PRIMARY_CODE in _SQLITE_BUSY
    return getattr(error.orig, "sqlstate", None) in _POSTGRES_BUSY


def is_away(error: BaseException) -> bool:
    """Say whether a server does not answer or is shutting down, so that it may be back soon."""
    orig = getattr(error, "orig", None)
    if not isinstance(error, DBAPIError) or hasattr(orig, "sqlite_errorcode"):
        return False
    state = getattr(orig, "sqlstate", None)
    if state is None:
        refused = any(mark in str(orig) for mark in _REFUSED_FOR_GOOD)
        return _is_psycopgs(orig, "OperationalError") and not refused
    return state.startswith(_POSTGRES_AWAY)


def why_unavailable(error: Exception) -> str | None:
    """Say what is wrong with the database, or None for a fault of our own."""
    orig = getattr(error, "orig", None)
    code = getattr(orig, "sqlite_errorcode", None)
    if code is not None:
        return _SQLITE_UNAVAILABLE.get(code & _PRIMARY_CODE)
    state = getattr(orig, "sqlstate", None) or ""
    if is_away(error) or state.startswith(_POSTGRES_UNAVAILABLE) or _refused(error):
        return message(error)
    return None


def _refused(error: Exception) -> bool:
    """Say whether no connection was made: psycopg gives no SQLSTATE then.

    Either the server refused it, or psycopg itself did, for an option of the URL.
    """
    orig = getattr(error, "orig", None)
    if getattr(orig, "sqlstate", None) is not None:
        return False
    by_itself = _is_psycopgs(orig, "ProgrammingError") and _is_before_any_statement(error)
    return _is_psycopgs(orig, "OperationalError") or by_itself


def _is_psycopgs(orig: object, name: str) -> bool:
    """Say whether an error is of a class of psycopg's, which need not be installed, or of one below it."""
    return any(each.__name__ == name for each in type(orig).__mro__)


def _is_before_any_statement(error: Exception) -> bool:
    return isinstance(error, DBAPIError) and error.statement is None


def message(error: BaseException | None) -> str:
    """Give the database's own message; a server's without the place in our statement."""
    orig = getattr(error, "orig", error)
    primary = getattr(getattr(orig, "diag", None), "message_primary", None)
    return primary or str(orig).strip()
