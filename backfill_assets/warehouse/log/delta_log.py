"""Read Delta's log as files without Spark: the head, and the actions and metadata of each commit."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from backfill_assets.errors import BackfillAssetsError, one_line
from backfill_assets.warehouse.log.places import file_system, folder_entries, local_folder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from deltalake import DeltaTable

ABSENT = -1
LOG_FOLDER = "_delta_log"
"""The folder of a table's log, beside its files."""
STEPS_PER_TOKEN = 5
"""Delta takes a transaction version once, so each step of one token's holder has a number of its own.

Releases before this one had four. A token that is read from their tables is then too small, but the
numbers of the next one are larger than all that is there, which is what counts.
"""
_COMMIT = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint.*\.parquet")


WITHOUT_BACKUP = (
    "Without a backup: `backfill abandon` gives up a plan whose own table it is; of a table that is published, move "
    "the folder and the state database away: `backfill state rebuild` records the other tables, `backfill run` "
    "fills the model again; a source has to be repaired by its owner"
)
"""What to do about a table of which not only rows are lost, but its log."""


class CorruptTableError(BackfillAssetsError):
    """A table's Delta log can't be trusted."""

    def __init__(self, *, path: str, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(
            f"the Delta log of {path} is damaged: {found}. Nothing was written. Restore the file from a backup. "
            f"{WITHOUT_BACKUP}"
        )


@dataclass(frozen=True, slots=True)
class LoggedCommit:
    """One commit of a table.

    Attributes:
        delta_version: Delta's number.
        metadata: the `userMetadata` that the writer gave; None if it gave none.
        changes_data: whether rows were added or removed; a fence or a new empty table changes none.
        bytes_added: size of the files that it added.
        tokens: the transaction versions that it carries, by application id.
        committed_at: when, by the writer's clock (UTC); None if it did not say.
    """

    delta_version: int
    metadata: str | None
    changes_data: bool
    bytes_added: int
    tokens: Mapping[str, int]
    committed_at: datetime | None = None


def head(path: str) -> int:
    """Give the newest delta_version of a table; -1 (`ABSENT`) when there is no table.

    Raises:
        CorruptTableError: the log has a hole, or its newest commit can't be read.
    """
    names = _log_names(path)
    versions = sorted(int(m[1]) for name in names if (m := _COMMIT.fullmatch(name)))
    checkpoints = [int(m[1]) for name in names if (m := _CHECKPOINT.fullmatch(name))]
    if not versions:
        if checkpoints:
            raise CorruptTableError(path=path, found="it has checkpoints but no commit")
        return ABSENT
    _refuse_holes(path, versions, max(checkpoints, default=0))
    logged_commit(path, versions[-1])
    return versions[-1]


def clear_unborn(path: str) -> None:
    """Remove a log without a commit, which an interrupted creation of a table has left.

    Delta can neither read nor create a table there. If the folder holds a file that is not temporary,
    the file and the folder stay.
    """
    folder = local_folder(path)
    if folder is None or not (folder / LOG_FOLDER).is_dir():
        return
    for file in (folder / LOG_FOLDER).glob(".*.json.*"):
        file.unlink(missing_ok=True)
    with suppress(OSError):  # another writer's commit is there by now
        (folder / LOG_FOLDER / "_staged_commits").rmdir()
    with suppress(OSError):
        (folder / LOG_FOLDER).rmdir()


def commits_there(path: str) -> frozenset[int]:
    """Name the commits whose own files still exist: a log's clean-up removes old ones."""
    return frozenset(int(m[1]) for name in _log_names(path) if (m := _COMMIT.fullmatch(name)))


def table_id(path: str) -> str:
    """Give the id that Delta gave a table with its first commit; empty if that commit is gone.

    Raises:
        CorruptTableError: the first commit is not what Delta writes.
    """
    if not is_table(path):
        return ""
    described = (action["metaData"] for action in actions_of(path, 0) if "metaData" in action)
    return str(next(described, {}).get("id", ""))


def is_table(path: str) -> bool:
    """Check whether a table's first commit exists; later steps may be missing."""
    return f"{0:020d}.json" in _log_names(path)


def _refuse_holes(path: str, versions: list[int], checkpoint: int) -> None:
    needed = range(min(checkpoint, versions[-1]), versions[-1] + 1)
    missing = set(needed) - set(versions) - ({checkpoint} if checkpoint else set())
    if missing:
        raise CorruptTableError(path=path, found=f"commit {min(missing)} is missing")


def last_token(path: str, app_id: str) -> int:
    """Give the largest fencing token that a table's log shows; 0 for none.

    Tokens only grow, so the newest commit that carries one has the largest.
    """
    for number in range(head(path), ABSENT, -1):
        tokens = logged_commit(path, number).tokens
        if app_id in tokens:
            return tokens[app_id] // STEPS_PER_TOKEN
    return 0


def logged_commits(path: str, delta_version: int) -> tuple[LoggedCommit, ...]:
    """Read every commit after a version, oldest first.

    Raises:
        CorruptTableError: one of them is missing or can't be read.
    """
    newest = head(path)
    return tuple(logged_commit(path, number) for number in range(delta_version + 1, newest + 1))


def logged_commit(path: str, delta_version: int) -> LoggedCommit:
    """Read one commit.

    Raises:
        CorruptTableError: it is missing or is not what Delta writes.
    """
    actions = actions_of(path, delta_version)
    try:
        return _commit(delta_version, actions)
    except (ValueError, KeyError, StopIteration) as error:
        raise _unreadable(path, delta_version, error) from error


def actions_of(path: str, delta_version: int) -> list[dict[str, Any]]:
    """Read the actions of one commit, as Delta's protocol has them.

    Raises:
        CorruptTableError: it is missing or is not what Delta writes.
    """
    try:
        text = _read(path, f"{delta_version:020d}.json")
        # Only line feeds end an action: a text within one may hold any other mark of a line's end.
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    except FileNotFoundError as error:
        raise CorruptTableError(path=path, found=f"commit {delta_version} is missing") from error
    except ValueError as error:
        raise _unreadable(path, delta_version, error) from error


def opened_log(path: str, delta_version: int | None = None) -> DeltaTable:
    """Open a table by its log, without Spark.

    Args:
        path: of the Delta table.
        delta_version: at which; None for now.

    Raises:
        CorruptTableError: there is no such table, or its log is damaged or does not reach so far.
    """
    from deltalake import DeltaTable  # noqa: PLC0415 - only readers of a whole log need it
    from deltalake.exceptions import DeltaError  # noqa: PLC0415

    try:
        return DeltaTable(path, version=delta_version)
    except DeltaError as error:
        raise CorruptTableError(path=path, found=one_line(error)) from error


def delta_json_schema(log: DeltaTable) -> list[dict[str, Any]]:
    """Read a table's columns without Spark, in the JSON form that Spark and Delta share."""
    return json.loads(log.schema().to_json())["fields"]


def name_in_files(field: Mapping[str, Any]) -> str:
    """Give the name by which files and the log's statistics hold a column; it keeps this name for its life.

    Args:
        field: of `delta_json_schema`.
    """
    return str(field.get("metadata", {}).get("delta.columnMapping.physicalName", field["name"]))


def _unreadable(path: str, delta_version: int, error: Exception) -> CorruptTableError:
    name = f"{delta_version:020d}.json"
    return CorruptTableError(
        path=path, found=f"commit {delta_version} ({name}) can't be read: {error}"
    )


def _commit(delta_version: int, actions: list[dict[str, Any]]) -> LoggedCommit:
    if not actions or not all(isinstance(action, dict) for action in actions):
        message = "it holds no actions"
        raise ValueError(message)
    info: dict[str, Any] = next(
        (action["commitInfo"] for action in actions if "commitInfo" in action), {}
    )
    added = [action["add"] for action in actions if "add" in action]
    removed = [action["remove"] for action in actions if "remove" in action]
    return LoggedCommit(
        delta_version=delta_version,
        metadata=info.get("userMetadata"),
        changes_data=any(file.get("dataChange", True) for file in (*added, *removed)),
        bytes_added=sum(int(file["size"]) for file in added),
        tokens={
            action["txn"]["appId"]: int(action["txn"]["version"])
            for action in actions
            if "txn" in action
        },
        committed_at=_instant(info.get("timestamp")),
    )


def _instant(milliseconds: int | None) -> datetime | None:
    return None if milliseconds is None else datetime.fromtimestamp(milliseconds / 1000, UTC)


def _log_names(path: str) -> list[str]:
    folder = local_folder(path)
    if folder is not None:
        log = folder / LOG_FOLDER
        return [file.name for file in log.iterdir()] if log.is_dir() else []
    store, root = file_system(f"{path.rstrip('/')}/{LOG_FOLDER}")
    return [file.base_name for file in folder_entries(store, root)]


def _read(path: str, name: str) -> str:
    folder = local_folder(path)
    if folder is not None:
        return (folder / LOG_FOLDER / name).read_text(encoding="utf-8")
    store, file = file_system(f"{path.rstrip('/')}/{LOG_FOLDER}/{name}")
    with store.open_input_stream(file) as stream:
        return stream.read().decode("utf-8")
