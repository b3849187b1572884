"""A folder of texts holds what was written last, and nothing else, on a disk and in a store."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from pyarrow.fs import FileSelector, FileSystem, FileType

from backfill_assets.warehouse.files.text_folder import TextFolder
from backfill_assets_tests.s3 import BUCKET


@pytest.fixture(params=["disk", "s3"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "disk":
        return str(tmp_path / "evidence" / "p1")
    request.getfixturevalue("s3")
    return f"s3://{BUCKET}/{uuid4().hex}/p1"


def held(location: str) -> dict[str, bytes]:
    uri = location if "://" in location else f"file://{location}"
    store, path = FileSystem.from_uri(uri)
    found = store.get_file_info(FileSelector(path))
    return {
        file.base_name: store.open_input_stream(file.path).read()
        for file in found
        if file.type is FileType.File
    }


def test_what_is_written_again_replaces_what_was_there(location: str):
    folder = TextFolder(location)

    folder.write({"a": b"1", "b": b"2"})
    folder.write({"a": b"3"})

    assert held(location) == {"a": b"3", "b": b"2"}


def test_what_is_not_kept_is_deleted(location: str):
    folder = TextFolder(location)
    folder.write({"a": b"1", "b": b"2", ".draft.0": b"of a process that died"})

    folder.keep_only({"a"})

    assert held(location) == {"a": b"1"}


def test_a_text_that_can_not_be_written_leaves_the_old_one_and_no_draft(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = TextFolder(str(tmp_path))
    folder.write({"a": b"old"})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write({"a": b"new"})

    assert held(str(tmp_path)) == {"a": b"old"}


def test_a_file_that_another_process_deletes_at_the_same_time_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = TextFolder(str(tmp_path))
    folder.write({"a": b"1", "b": b"2"})

    def deleted_meanwhile(file: Path) -> bool:
        file.unlink()
        return True

    monkeypatch.setattr(Path, "is_file", deleted_meanwhile)
    folder.keep_only({"a"})

    assert [file.name for file in tmp_path.iterdir()] == []
