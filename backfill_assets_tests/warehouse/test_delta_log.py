from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from backfill_assets.warehouse.files.tables import delta_schema, same_type
from backfill_assets.warehouse.log.delta_log import (
    ABSENT,
    STEPS_PER_TOKEN,
    CorruptTableError,
    head,
    last_token,
    logged_commits,
)
from backfill_assets.warehouse.spark.spark_errors import (
    CommitConflictError,
    DamagedFileError,
    PinGoneError,
    WarehouseUnwritableError,
    error_of_ours,
)

if TYPE_CHECKING:
    from pathlib import Path


def log(path: Path, *commits: list[dict[str, object]]) -> str:
    folder = path / "_delta_log"
    folder.mkdir()
    for number, actions in enumerate(commits):
        text = "\n".join(json.dumps(action) for action in actions)
        (folder / f"{number:020d}.json").write_text(text)
    return str(path)


def said(text: str, token: int | None = None) -> list[dict[str, object]]:
    actions: list[dict[str, object]] = [
        {"commitInfo": {"operation": "WRITE", "userMetadata": text}}
    ]
    if token is not None:
        actions.append({"txn": {"appId": "sales", "version": token * STEPS_PER_TOKEN + 2}})
    actions.append({"add": {"path": "x", "size": 7, "dataChange": True, "partitionValues": {}}})
    return actions


def test_a_folder_without_a_log_is_no_table(tmp_path: Path):
    assert head(str(tmp_path)) == head(str(tmp_path / "missing")) == ABSENT


def test_the_log_tells_what_each_commit_said(tmp_path: Path):
    path = log(tmp_path, said("first", 3), said("second", 5), said("third"))
    assert head(path) == 2
    second, third = logged_commits(path, 0)
    assert (second.delta_version, second.metadata, second.bytes_added) == (1, "second", 7)
    assert (third.delta_version, third.metadata) == (2, "third")
    assert last_token(path, "sales") == 5
    assert last_token(path, "another") == 0


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\u001e"])
def test_a_text_within_a_commit_may_hold_any_mark_of_a_lines_end(tmp_path: Path, mark: str):
    path = log(tmp_path)
    lines = (json.dumps(action, ensure_ascii=False) for action in said(f"a{mark}b", 3))
    (tmp_path / "_delta_log" / f"{0:020d}.json").write_text("\n".join(lines), encoding="utf-8")
    assert [commit.metadata for commit in logged_commits(path, ABSENT)] == [f"a{mark}b"]


def test_a_hole_in_the_log_is_named(tmp_path: Path):
    path = log(tmp_path, said("0"), said("1"), said("2"))
    (tmp_path / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(CorruptTableError, match="commit 1 is missing"):
        head(path)


@pytest.mark.parametrize("text", ["", '{"add": {"pa', "[]"], ids=["empty", "torn", "nonsense"])
def test_a_torn_commit_is_named_with_what_to_do(tmp_path: Path, text: str):
    path = log(tmp_path, said("0"), said("1"))
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text(text)
    with pytest.raises(CorruptTableError, match="Restore the file") as refused:
        head(path)
    assert refused.value.path == path
    assert "a source has to be repaired by its owner" in str(refused.value)


def test_commits_before_a_checkpoint_may_be_gone(tmp_path: Path):
    path = log(tmp_path, said("0"), said("1"), said("2"))
    folder = tmp_path / "_delta_log"
    (folder / f"{0:020d}.json").unlink()
    (folder / f"{1:020d}.checkpoint.parquet").write_bytes(b"")
    assert head(path) == 2


def test_a_schema_is_read_without_spark(tmp_path: Path):
    nested = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}
    fields = [
        {"name": "n", "type": "integer", "nullable": True, "metadata": {}},
        {"name": "price", "type": "decimal(18,2)", "nullable": True, "metadata": {}},
        {"name": "m", "type": nested, "nullable": True, "metadata": {}},
    ]
    metadata = {
        "id": "x",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {},
        "createdTime": 0,
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    path = log(tmp_path, [{"protocol": protocol}, {"metaData": metadata}])
    assert delta_schema(path, 0) == (
        ("n", "int"),
        ("price", "decimal(18,2)"),
        ("m", "map<string,bigint>"),
    )


def test_types_are_compared_by_meaning():
    assert same_type("INTEGER", "int")
    assert same_type("decimal(18, 2)", "decimal(18,2)")
    assert not same_type("decimal(18,2)", "decimal(18,4)")
    assert same_type("NUMERIC(18, 2)", "decimal(18,2)")
    assert same_type("dec", "decimal(10,0)")
    assert same_type("numeric(5)", "decimal(5,0)")
    assert same_type("timestamp_ltz", "timestamp")
    assert same_type("array<struct<long:LONG, `a-b`: map<string,short>>>",
                     "array<struct<long:bigint,a-b:map<string,smallint>>>")  # fmt: skip
    assert not same_type("struct<long:int>", "struct<bigint:int>")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("java.io.IOException: No space left on device", WarehouseUnwritableError),
        ("[TASK_WRITE_FAILED] ... (Read-only file system)", WarehouseUnwritableError),
        ("[DELTA_CONCURRENT_APPEND] Files were added", CommitConflictError),
        ("[DELTA_LOG_FILE_NOT_FOUND] missing", CorruptTableError),
        ("java.io.FileNotFoundException: File file:/t/_delta_log does not exist", PinGoneError),
        ("[FAILED_READ_FILE.NO_HINT] reading file:/t/_delta_log/1.json", CorruptTableError),
        ("[FAILED_READ_FILE.NO_HINT] reading file:/t/_cell=2024-01-05/a.parquet", DamagedFileError),
        (
            "[FAILED_READ_FILE.FILE_NOT_EXIST] reading file:/t/_cell=2024-01-05/a.parquet",
            PinGoneError,
        ),
    ],
)
def test_engine_errors_are_told_apart_by_their_words(text: str, kind: type[Exception]):
    error = error_of_ours(RuntimeError(f"first line\n{text}\nlast line"), "somewhere")
    assert isinstance(error, kind)
    assert text in str(error)


def test_other_engine_errors_stay_what_they_are():
    error = RuntimeError("[DIVIDE_BY_ZERO] Division by zero")
    assert error_of_ours(error, "somewhere") is error
