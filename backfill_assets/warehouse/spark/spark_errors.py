"""Classify errors of Spark and Delta by their messages.

Over Spark Connect every one of them has the same class, so the bracketed condition in the message (or,
for a disk, the operating system's words) is the only evidence.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.warehouse.log.delta_log import CorruptTableError

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONFLICTS = (
    "DELTA_CONCURRENT_",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
    "DELTA_DELETED_PARQUET_FILE_NOT_FOUND",
    "ConcurrentTransactionException",
    "ConcurrentAppendException",
    "ConcurrentDelete",
    "FileAlreadyExistsException",
)
_UNWRITABLE = (
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Permission denied",
    "(Permission denied)",
    "Mkdirs failed",
    "ParentNotDirectoryException",
    "Not a directory",
    "AccessDenied",
    "ACCESS_DENIED",
    "lacked the necessary privileges",
    "Could not create local directory",
    "FAILED_TO_CREATE_DIR",
    "DELTA_CANNOT_CREATE_LOG_PATH",
)
_DAMAGED = (
    "DELTA_TRUNCATED_TRANSACTION_LOG",
    "DELTA_LOG_FILE_NOT_FOUND",
    "DELTA_STATE_RECOVER_ERROR",
    "DELTA_INVALID_COMMITTED_VERSION",
    "DELTA_VERSIONS_NOT_CONTIGUOUS",
    "DELTA_MISSING_PART_FILES",
)
_UNREADABLE = ("FAILED_READ_FILE",)
_NO_FILE = ("FileNotFoundException",)
_GONE = (
    "FILE_NOT_EXIST",
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
    "Find missing file",
    "PATH_NOT_FOUND",
)
# Java's and Python's names for failures of a connection, a driver and its executors.
_LOST = (
    "Py4JNetworkError",
    "Answer from Java side is empty",
    "Error while sending or receiving",
    "Target Object ID does not exist",
    "JAVA_GATEWAY_EXITED",
    "SparkContext was shut down",
    "SparkContext has been shutdown",
    "stopped SparkContext",
    # A query that ends while the driver is stopped finds parts of it gone, and Spark does not say why.
    'because the return value of "org.apache.spark.Spark',
    "INVALID_HANDLE.SESSION_",
    "INVALID_HANDLE.OPERATION_",
    "StatusCode.UNAVAILABLE",
    "on closed channel",
    "RETRIES_EXCEEDED",
    "ExecutorLostFailure",
    "FetchFailed",
    "OutOfMemoryError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "BrokenPipeError",
    "ConnectException",
    "Connection refused",
    "Connection reset",
    "SocketTimeoutException",
    "UnknownHostException",
    "NoRouteToHostException",
    "Read timed out",
)
# The messages of the three clients of an object store when it fails or times out: Hadoop's,
# pyarrow's and delta-rs's.
_STORE = (
    "AWSStatus500Exception",
    "AWSServiceThrottledException",
    "AWSServiceIOException",
    "AWSClientIOException",
    "AWSApiCallTimeoutException",
    "awssdk.core.exception",
    "AWS Error NETWORK_CONNECTION",
    "AWS Error SLOW_DOWN",
    "AWS Error SERVICE_UNAVAILABLE",
    "AWS Error INTERNAL_FAILURE",
    "AWS Error REQUEST_TIMEOUT",
    "AWS Error THROTTLING",
    "AWS Error UNKNOWN (HTTP status 5",
    "Generic S3 error",
)
_CANCELLED = ("SPARK_JOB_CANCELLED", "OPERATION_CANCELED")
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_]+)[\].]")
_STATE = re.compile(r"SQLSTATE: (\w\w)")
_OF_VALUES = frozenset({"22", "P0"})
"""How the SQLSTATE begins of what a query makes of values (a cast, a parsed text, `raise_error`), which it quotes."""


_BUILD_AGAIN = (
    "Every cell of a model that was in it is built again by a plan: `backfill plan --restate MODEL:FIRST..LAST`; a "
    "source has to be repaired by its owner"
)


class NeedsSparkError(BackfillAssetsError):
    """The rows can't be read, or can't be compared, without Spark."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        super().__init__(f"the rows of the table at {path} can't be read without Spark: {reason}")


class WarehouseUnwritableError(BackfillAssetsError):
    """The place where a table lies can't be written: full, read-only or not ours."""

    def __init__(self, *, path: str, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"can't write {path}: {found}. What was published is unchanged. Make room, or give "
            "this user the right to write there, and run again"
        )


class CommitConflictError(BackfillAssetsError):
    """Another writer committed to a table during this commit, and Delta refused ours."""

    def __init__(self, *, path: str, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"Delta refused the commit to {path}, because another one came first: {found}. "
            "Nothing of it was written; run again"
        )


class PinGoneError(BackfillAssetsError):
    """A pinned delta_version can't be read any more: its commits or files are gone."""

    def __init__(self, *, path: str, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"a pinned version of {path} is gone: {found}. The table was vacuumed, or its files or its log were "
            f"deleted outside this project. {_BUILD_AGAIN}"
        )


class DamagedFileError(BackfillAssetsError):
    """A data file can't be read."""

    def __init__(self, *, path: str, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"a file of {path} can't be read: {found}. Nothing was written. Restore the file from a backup. "
            f"Without a backup, delete it. {_BUILD_AGAIN}"
        )


class SparkLostError(BackfillAssetsError):
    """Spark, a part of it, or the connection to it or to the data is lost."""

    def __init__(self, *, path: str, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"Spark was lost while it worked on {path}: {found}. What was published is unchanged; "
            "run again, Spark is started anew"
        )


class StoreFailedError(BackfillAssetsError):
    """The object store fails, or does not answer in time."""

    def __init__(self, *, path: str, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"the object store of {path} failed, or did not answer in time: {found}. Whether a commit "
            "that was under way is in the table's log is found out by the next run; nothing else is "
            "visible. Run again once the store answers"
        )


class JobsCancelledError(BackfillAssetsError):
    """A batch's Spark jobs were cancelled."""

    def __init__(self, *, path: str, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"the Spark jobs for {path} were cancelled: {found}. What was published is unchanged; "
            "run again"
        )


def error_of_ours(error: Exception, path: str = "a table") -> Exception:
    """Give the error of ours that an engine's error means for a table, or the error itself."""
    if isinstance(error, BackfillAssetsError):
        return error
    text = _whole_text(error)
    if _is_of_values(text):
        return error
    for marks, kind in (
        (_CANCELLED, JobsCancelledError),
        (_UNWRITABLE, WarehouseUnwritableError),
        (_STORE, StoreFailedError),
        (_LOST, SparkLostError),
        (_GONE, PinGoneError),
        (_CONFLICTS, CommitConflictError),
        (_DAMAGED, CorruptTableError),
        (_UNREADABLE, _unreadable),
        (_NO_FILE, PinGoneError),
    ):
        matched = next((mark for mark in marks if mark in text), None)
        if matched is not None:
            return kind(path=path, found=_line_with(text, matched))
    return error


def _unreadable(*, path: str, found: str) -> CorruptTableError | DamagedFileError:
    """Tell a file of the log, which no plan builds again, from a file of rows."""
    kind = CorruptTableError if "_delta_log" in found else DamagedFileError
    return kind(path=path, found=found)


def _is_of_values(text: str) -> bool:
    """Whether an error's outermost condition is about values of a query: their words say nothing about Spark or a table."""
    condition, state = _CONDITION.search(text), _STATE.search(text)
    if condition is None or state is None or condition[1].startswith("DELTA_"):
        return False
    return state[1] in _OF_VALUES


@contextmanager
def explaining_errors(path: str) -> Iterator[None]:
    """Turn engine errors about a table into ours, with the engine's as their cause."""
    try:
        yield
    except BackfillAssetsError:
        raise
    except Exception as error:
        ours = error_of_ours(error, path)
        if ours is error:
            raise
        raise ours from error


def _whole_text(error: BaseException | None) -> str:
    parts: list[str] = []
    while error is not None:
        java = getattr(error, "java_exception", None)  # classic py4j errors keep causes to Java
        parts += [f"{type(error).__name__}: {_text(error)}", "" if java is None else _text(java)]
        error = error.__cause__
    return "\n".join(parts)


def _text(error: object) -> str:
    """Give an error's text; a Java error's comes from the JVM, which may be dead.

    delta-rs writes each cause of an error on a line of its own; they are joined to one line.
    """
    try:
        return _CAUSE.sub(": ", str(error))
    except Exception as dead:  # noqa: BLE001 - py4j may raise any error for a dead driver
        return type(dead).__name__


_CAUSE = re.compile("\\s*\n\\s*(\x1b\\[\\d+m)?↳(\x1b\\[\\d+m)?\\s*")


def _line_with(text: str, mark: str) -> str:
    line = next(line for line in text.splitlines() if mark in line)
    at = max(line.find(mark) - 100, 0)
    return line[at : at + 500].strip().removeprefix(": ")
