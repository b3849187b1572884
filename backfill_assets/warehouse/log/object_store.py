"""Refuse an object store that may overwrite a file which must be created only once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from secrets import token_hex
from threading import Barrier
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.warehouse.log.places import file_system

if TYPE_CHECKING:
    from deltalake import DeltaTable


class CarelessStoreError(BackfillAssetsError):
    """An object store overwrites a file that must be created only if it does not exist."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"the object store of {path} lets two writers both write one entry of a table's log, so that "
            "one of them is lost without an error; expected a store that carries out conditional puts "
            "(If-None-Match), and an environment that does not switch them off. No table was made"
        )


def refuse_careless_store(path: str) -> None:
    """Commit several times at once on one version of a small table beside this one: at most one may succeed.

    Args:
        path: of a table that is to be made.

    Raises:
        CarelessStoreError: more than one did.
    """
    from deltalake import DeltaTable, Field, Schema  # noqa: PLC0415 - once a table
    from deltalake.schema import PrimitiveType  # noqa: PLC0415

    probe = f"{path.rstrip('/')}-probe-{token_hex(8)}"
    store, folder = file_system(probe)
    try:
        DeltaTable.create(probe, Schema([Field("n", PrimitiveType("long"))]))
        careless = any(_overwrites(probe) for _ in range(_ROUNDS))
    finally:
        with suppress(OSError):  # the cause is reported instead; there may be no folder yet
            store.delete_dir(folder)
    if careless:
        raise CarelessStoreError(path)


def _overwrites(probe: str) -> bool:
    """Let several writers commit at once; whether more than one succeeded.

    delta-rs looks for a newer version first, so only writers at one time ask the store itself. On a busy
    machine they may come one after the other all the same, so one look does not prove enough.
    """
    from deltalake import DeltaTable  # noqa: PLC0415

    writers, start = [DeltaTable(probe) for _ in range(_WRITERS)], Barrier(_WRITERS)
    with ThreadPoolExecutor(_WRITERS) as threads:
        return sum(threads.map(partial(_commits, start), writers)) > 1


def _commits(start: Barrier, table: DeltaTable) -> bool:
    from deltalake import CommitProperties  # noqa: PLC0415
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415

    properties = CommitProperties(max_commit_retries=0)
    start.wait()
    try:
        table.create_write_transaction([], "append", table.schema(), commit_properties=properties)
    except CommitFailedError:
        return False
    return True


_WRITERS, _ROUNDS = 6, 3
