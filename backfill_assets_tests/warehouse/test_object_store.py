"""A table's log in S3, over its real protocol: compare-and-set, and a store that fails or is late."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NoReturn
from uuid import uuid4

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyarrow import parquet
from pyarrow.fs import FileSelector, FileSystem

from backfill_assets.warehouse.files.cell_files import (
    CellFile,
    copy_files,
    described,
    files_at,
    files_in,
    new_folder,
    remove_folder,
)
from backfill_assets.warehouse.files.collection import delete_table
from backfill_assets.warehouse.files.housekeeping import create_table
from backfill_assets.warehouse.files.log_entry import FilesGoneError, write_entry
from backfill_assets.warehouse.log.delta_log import ABSENT, head, logged_commits
from backfill_assets.warehouse.log.object_store import CarelessStoreError
from backfill_assets.warehouse.log.ticket import CommitLostError, in_log
from backfill_assets.warehouse.spark.spark_errors import (
    CommitConflictError,
    StoreFailedError,
    WarehouseUnwritableError,
    explaining_errors,
)
from backfill_assets_tests.s3 import BUCKET, Fault
from backfill_assets_tests.warehouse.shop import (
    entry,
    sales,
    ticket,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from deltalake import CommitProperties

    from backfill_assets.warehouse.log.ticket import Ticket
    from backfill_assets_tests.s3 import Request, S3Server

CELL = "2024-01-01"
LOST = Fault("500 Internal Server Error", carried_out=True)


def no_spark() -> NoReturn:
    raise RuntimeError("a log was to be written without Spark")


@pytest.fixture
def path(s3: S3Server) -> str:
    """A new table of sales."""
    return made(f"s3://{BUCKET}/{uuid4().hex}/sales")


def made(path: str) -> str:
    create_table(no_spark, sales(), path, app_id="commerce__sales", token=1)
    return path


def written(path: str, *shops: str) -> tuple[CellFile, ...]:
    """Files of one cell that no log names, as Spark would write them."""
    folder = new_folder()
    store, root = FileSystem.from_uri(path)
    rows = pa.table({"shop": [*shops]})
    parquet.write_table(rows, f"{root}/{folder}/_cell={CELL}/part-0.parquet", filesystem=store)
    return files_in(path, folder)


def shops(path: str, version: int | None = None) -> list[str]:
    return sorted(DeltaTable(path, version=version).to_pyarrow_table()["shop"].to_pylist())


def objects(path: str) -> list[str]:
    store, root = FileSystem.from_uri(path)
    found = store.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
    return [info.path.removeprefix(f"{root}/") for info in found if info.is_file and info.size]


def once(fault: Fault, hits: Callable[[Request], bool]) -> Callable[[Request], Fault | None]:
    """Let the first request of a kind fail."""
    met: list[Request] = []

    def faulty(request: Request) -> Fault | None:
        if met or not hits(request):
            return None
        met.append(request)
        return fault

    return faulty


def test_cells_are_replaced_copied_and_named_again(path: str):
    first = entry({CELL: written(path, "a")}, ticket(path, 2))
    entry({CELL: written(path, "b", "c")}, ticket(path, 3))
    assert shops(path) == ["b", "c"]

    other = made(f"{path}-copy")
    copies = copy_files(path, files_at(path, head(path), [CELL]), [CELL], other, new_folder())
    entry({CELL: copies}, ticket(other, 2))
    assert shops(other) == ["b", "c"]

    entry({CELL: described(path, files_at(path, first.delta_version))}, ticket(path, 4))
    assert shops(path) == ["a"]
    delete_table(other)
    assert objects(other) == []


def test_files_that_no_log_names_are_taken_away(path: str):
    before = objects(path)
    [file] = written(path, "a")
    remove_folder(path, file.name.split("/")[0])
    assert objects(path) == before
    with pytest.raises(FilesGoneError):
        entry({CELL: [file]}, ticket(path, 2))


def test_a_writer_that_wakes_up_in_its_commit_is_refused_by_the_store(path: str):
    late, new = ticket(path, 2), ticket(path, 3)
    files = written(path, "new")

    def wakes_up(table: DeltaTable, said: CommitProperties) -> None:
        entry({CELL: files}, new)
        table.create_write_transaction([], "append", table.schema(), commit_properties=said)

    with pytest.raises(CommitLostError):
        write_entry(late, wakes_up)
    assert shops(path) == ["new"]


def test_of_writers_at_one_time_each_knows_what_is_in_the_log(path: str):
    def commit(number: int) -> Ticket | None:
        said = ticket(path, number)
        try:
            entry({}, said)
        except (CommitConflictError, CommitLostError):
            return None
        return said

    with ThreadPoolExecutor(8) as threads:
        done = [said.metadata for said in threads.map(commit, range(2, 50)) if said]
    logged = [logged_commit.metadata for logged_commit in logged_commits(path, 0)]
    assert sorted(done) == sorted(str(text) for text in logged)
    assert done


def test_a_store_that_overwrites_log_entries_gets_no_table(s3: S3Server):
    path = f"s3://{BUCKET}/{uuid4().hex}/sales"
    s3.careless = True
    try:
        with pytest.raises(CarelessStoreError, match="If-None-Match"):
            made(path)
    finally:
        s3.careless = False
    assert head(path) == ABSENT
    assert objects(path.rsplit("/", 1)[0]) == []


def test_a_commit_whose_answer_is_lost_is_found_in_the_log(s3: S3Server, path: str):
    files = written(path, "a")
    with s3.failing(once(LOST, lambda request: request.is_commit)):
        done = entry({CELL: files}, ticket(path, 2))
    assert done.delta_version == head(path) == 1
    assert shops(path) == ["a"]


@pytest.mark.slow
def test_a_commit_of_which_no_answer_comes_is_found_in_the_log(s3: S3Server, path: str):
    files = written(path, "a")
    with s3.failing(lambda request: LOST if request.is_commit else None):
        done = entry({CELL: files}, ticket(path, 2))
    assert done.delta_version == head(path) == 1


def test_a_store_that_refuses_for_a_moment_is_asked_again(s3: S3Server, path: str):
    files = written(path, "a")
    with s3.failing(once(Fault(), lambda request: request.is_commit)):
        entry({CELL: files}, ticket(path, 2))
    assert shops(path) == ["a"]


def test_a_store_that_takes_no_commit_is_named_and_nothing_is_visible(s3: S3Server, path: str):
    files = written(path, "a")
    with s3.failing(lambda request: Fault() if request.is_commit else None):
        with pytest.raises(StoreFailedError, match="503"):
            entry({CELL: files}, ticket(path, 2))
        assert head(path) == 0
    assert entry({CELL: files}, ticket(path, 2)).delta_version == 1


def test_a_store_that_answers_nothing_is_no_damaged_table(s3: S3Server, path: str):
    with (
        s3.failing(lambda _: Fault()),
        pytest.raises(StoreFailedError, match="503"),
        explaining_errors(path),
    ):
        entry({}, ticket(path, 2))


def test_a_right_that_is_missing_is_said(s3: S3Server, path: str):
    forbidden = Fault("403 Forbidden")
    with (
        s3.failing(lambda request: forbidden if request.is_commit else None),
        pytest.raises(WarehouseUnwritableError, match="can't write"),
    ):
        entry({}, ticket(path, 2))


@pytest.mark.slow
def test_a_commit_that_lands_after_its_client_gave_up_is_found_by_the_next_one(
    s3: S3Server, path: str
):
    said = ticket(path, 2)
    late = Fault(status=None, carried_out=True, late=33)  # delta-rs waits for 30 s
    with (
        s3.failing(once(late, lambda request: request.is_commit)),
        pytest.raises(StoreFailedError, match="timed out"),
    ):
        entry({CELL: written(path, "a")}, said)
    assert in_log(said, 0) is None
    time.sleep(5)
    assert in_log(said, 0) is not None
    with pytest.raises(CommitLostError):
        entry({CELL: written(path, "b")}, said)
    assert shops(path) == ["a"]
