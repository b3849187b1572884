"""A warehouse without a JVM, for tests of state and order: DuckDB computes and compares a few rows.

Tables, files, logs and commits are real, and whatever is judged and recorded is so by the product.
Replaced are the session and the functions of the warehouse that ask Spark in more than SQL: they write
rows as files, measure cells, and sum up sources. Three things differ: checksums are others (equal rows
have equal ones), numbers of bytes are others, and the types of a query's answer are not judged but cast to
what is declared. What it can't do it refuses: rows that are stamped or chosen, audits against
upstreams, Python models. `engine/test_fake_warehouse.py` holds it to Spark.
"""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest
from pyarrow import parquet

from backfill_assets.engine.batch import audit_run
from backfill_assets.intervals.cadence import WHOLE_CELL
from backfill_assets.models.audit import RowCountWithin, RowRule, Unique
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.column import CELL_COLUMN, MASKED, quoted
from backfill_assets.models.content import (
    CellProfile,
    Content,
    checksum,
    checksum_within,
    once_rounded,
)
from backfill_assets.snapshots.observation import SourceCell
from backfill_assets.warehouse.files import layers, tables
from backfill_assets.warehouse.files.cell_files import files_in, has_blocks
from backfill_assets.warehouse.files.cells import (
    block_of,
    cell_number,
    cell_of_number,
    cell_text,
    cell_type,
    instant_text,
    number_expression,
)
from backfill_assets.warehouse.files.commit import unwritten_cells
from backfill_assets.warehouse.rows import computed, conform, outside_rows, samples
from backfill_assets.warehouse.rows.moves import rows_elsewhere
from backfill_assets.warehouse.sources import source_content
from backfill_assets.warehouse.sources.source_changes import is_cut
from backfill_assets_tests.fake_session import NeedsRealSparkError, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from pyspark.sql import Row
    from pyspark.sql.types import StructType

    from backfill_assets.intervals import Interval, IntervalSet
    from backfill_assets.models.audit import Audit
    from backfill_assets.models.model import Model
    from backfill_assets.models.source import Source
    from backfill_assets.warehouse.files.commit import WrittenCells
    from backfill_assets.warehouse.rows.profile import Subject
    from backfill_assets_tests.fake_session import Frame


def contract(answer: Frame, model: Model) -> Frame:
    """Cast an answer to what is declared, and hold the model's contract against it."""
    if model.audit_columns or getattr(model.kind, "latest_by", None):
        raise NeedsRealSparkError(f"way to stamp or to choose rows ('{model.name}')")
    types = {column.name: column.dtype for column in model.schema}
    typed = (
        f"CAST({quoted(name)} AS {types[name]}) AS {quoted(name)}"
        if name in types
        else quoted(name)
        for name in answer.columns
    )
    found: Any = conform.contract(cast("Any", answer.selectExpr(*typed)), model)
    cell = f"CAST({CELL_COLUMN} AS {cell_type(model.cadence)}) AS {CELL_COLUMN}"
    return found.selectExpr(*map(quoted, types), cell)


@contextmanager
def written_cells(
    rows: Frame, model: Model, cells: Sequence[Interval], path: str
) -> Iterator[WrittenCells]:
    """Write rows as one file per cell or block, and range of the key, of which no log knows."""
    with unwritten_cells(path, model.cadence) as written:
        blocks = has_blocks(model.cadence, path)
        ranges = model.key_ranges.conditions() if model.key_ranges is not None else ()
        parts = [rows.where(rows_of_range) for rows_of_range in ranges] or [rows]
        for number, part in enumerate(parts):
            _write_part(part.arrow(), model, f"{path}/{written.folder}", number, blocks=blocks)
        written.files = files_in(path, written.folder)
        if blocks:
            written.prepare(cell_text(model.cadence, cell) for cell in cells)
        yield written


def _write_part(table: pa.Table, model: Model, folder: str, number: int, *, blocks: bool) -> None:
    places: dict[str, list[int]] = defaultdict(list)
    for at, cell in enumerate(table[CELL_COLUMN].to_pylist()):
        places[_folder(model, cell, blocks=blocks)].append(at)
    for name, rows_there in places.items():
        place = Path(folder) / name
        place.mkdir(parents=True, exist_ok=True)
        part = table.take(rows_there)
        part = part if blocks else part.drop_columns([CELL_COLUMN])
        parquet.write_table(part, place / f"{number}.parquet", store_decimal_as_integer=True)


def _folder(model: Model, cell: date | datetime | None, *, blocks: bool) -> str:
    if blocks and isinstance(cell, datetime):
        return f"block={block_of(model.cadence, instant_text(cell))}"
    return f"{CELL_COLUMN}={'__HIVE_DEFAULT_PARTITION__' if cell is None else cell.isoformat()}"


def rows_written(session: Session, schema: StructType, written: WrittenCells) -> Frame:
    """Read the rows of files that no log names."""
    if not written.files:
        return session.createDataFrame([], schema)
    parts: list[pa.Table] = []
    for file in written.files:
        part = parquet.ParquetFile(f"{written.path}/{file.name}").read()
        if CELL_COLUMN not in part.column_names:
            cell = None if file.first.startswith("__") else date.fromisoformat(file.first)
            part = part.append_column(CELL_COLUMN, pa.array([cell] * len(part), pa.date32()))
        parts.append(part)
    return session.held(pa.concat_tables(parts)).select(*map(quoted, schema.names))


def profile(rows: Frame, subject: Subject) -> tuple[CellProfile, ...]:
    """Measure cells: rows, checksums and failing rows."""
    model, number = subject.model, number_expression(subject.model.cadence)
    found: dict[int | None, list[Row]] = defaultdict(list)
    for row in rows.selectExpr("*", f"{number} AS _number").collect():
        found[row["_number"]].append(row)
    counts = {cell: len(there) for cell, there in found.items()}
    outside_rows.refuse_outside(rows, model, subject.cells, counts)  # type: ignore[arg-type]
    failing = {audit.name: _failing(audit, rows, subject) for audit in audits_of(model)}
    return tuple(
        CellProfile(
            cell,
            _content(model, found.get(cell_number(model.cadence, cell), [])),
            {name: by_cell[cell_number(model.cadence, cell)] for name, by_cell in failing.items()},
            {},
        )
        for cell in subject.cells
    )


def _failing(audit: Audit, rows: Frame, subject: Subject) -> Counter[int]:
    number = number_expression(subject.model.cadence)
    if isinstance(audit, RowRule):
        failed = f"count_if(NOT coalesce({audit.predicate}, TRUE))"
        return Counter(dict(rows.asked(f"{number}, {failed}", "GROUP BY 1")))
    if isinstance(audit, RowCountWithin):
        return Counter()
    if not isinstance(audit, Unique):
        raise NeedsRealSparkError(f"audit like {audit.name}")
    names = ", ".join(map(quoted, audit.columns))
    twice: Counter[int] = Counter()
    first = number.replace(CELL_COLUMN, f"min({CELL_COLUMN})")
    for cell, more in rows.asked(
        f"{first}, count(1) - 1", f"WHERE {_given(audit)} GROUP BY {names}"
    ):
        twice[cell] += more
    if (others := _held_elsewhere(rows, audit, subject)) is not None:
        twice.update(dict(others.asked(f"{number}, count(1)", "GROUP BY 1")))
    return twice


def _held_elsewhere(rows: Frame, audit: Unique, subject: Subject) -> Frame | None:
    """The rows whose values other cells of the table hold."""
    others: Any = rows_elsewhere(
        cast("Any", rows.sparkSession), subject.model, subject.cells, subject.target, audit.columns
    )
    return None if others is None else rows.join(others, audit.columns, "left_semi")


def _given(audit: Unique) -> str:
    return " AND ".join(f"{quoted(name)} IS NOT NULL" for name in audit.columns)


def _content(model: Model, rows: Sequence[Row]) -> Content:
    """Sum up hashes as the product does, of Python's values."""
    keys = [_hash(*(row[name] for name in model.key)) for row in rows]
    rounded = once_rounded({column.name: column.dtype for column in model.schema}, model.key)

    def total(name: str, of: Callable[[Any], Any] = lambda value: value) -> int:
        return sum(_hash(key, of(row[name])) for key, row in zip(keys, rows, strict=True))

    return Content(
        len(rows),
        checksum(sum(keys), exact=not rounded.isdisjoint(model.key)),
        {
            column.name: checksum(total(column.name), exact=column.name in rounded)
            for column in model.schema
        },
        {
            column.name: checksum_within(
                total(column.name, _on_grid(column.tolerance)), column.tolerance
            )
            for column in model.schema
            if column.tolerance is not None
        },
    )


def _on_grid(tolerance: float) -> Callable[[Any], Any]:
    return lambda value: None if value is None else round(value / (tolerance / 2))


def _hash(*values: object) -> int:
    same = [value + 0.0 if isinstance(value, float) else value for value in values]  # -0.0 is 0.0
    return int.from_bytes(hashlib.blake2b(repr(same).encode(), digest_size=8).digest(), "big")


def failing_rows(rows: Frame, audit: Audit, subject: Subject, limit: int = 10) -> tuple[str, ...]:
    """Give a few rows that fail an audit."""
    if not isinstance(audit, Unique):
        return samples.failing_rows(rows, audit, subject, limit)  # type: ignore[arg-type]
    names = ", ".join(map(quoted, audit.columns))
    twice = rows.sparkSession.sql(
        f"SELECT * FROM {rows.viewed()} WHERE {_given(audit)} "
        f"QUALIFY count(1) OVER (PARTITION BY {names}) > 1"
    )
    shown, others = subject.model.shown, _held_elsewhere(rows, audit, subject)
    found = as_json(twice, limit, shown)
    return found if found or others is None else as_json(others, limit, shown)


def as_json(rows: Frame, limit: int, shown: Collection[str]) -> tuple[str, ...]:
    """Give the first rows by their text as JSON objects, as Spark writes them, and mask them alike."""
    listed = rows.drop(CELL_COLUMN).collect()
    written = (
        "{"
        + ",".join(
            f"{json.dumps(name)}:{_json(value if name in shown or value is None else MASKED)}"
            for name, value in row.asDict().items()
        )
        + "}"
        for row in listed
    )
    return tuple(sorted(written)[:limit])


def _json(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, datetime):
        return f'"{value.isoformat(timespec="milliseconds").replace("+00:00", "Z")}"'
    return json.dumps(value.isoformat() if isinstance(value, date) else value, ensure_ascii=False)


def content_by_cell(
    spark: Session, path: str, source: Source, versions: tuple[int, ...], cells: IntervalSet
) -> tuple[dict[Interval, SourceCell], ...]:
    """Sum up a source's rows at several delta_versions."""
    names, said = [column.name for column in source.schema], source_content._declared(source)
    return tuple(
        {
            cell: SourceCell(cell, len(rows), f"{said}:{len(rows)}:{_sum(rows, names)}")
            for cell, rows in _source_rows(spark, path, source, at, cells).items()
        }
        for at in versions
    )


def same_columns(
    frames: list[Frame], source: Source, path: str, groups: Sequence[frozenset[str]]
) -> dict[Interval, tuple[bool, ...]]:
    """Decide of groups of columns whether two frames hold the same rows of them."""
    before, now = (_by_cell(frame, source) for frame in frames)
    return {
        cell: tuple(
            _sum(before[cell], sorted(group)) == _sum(now[cell], sorted(group)) for group in groups
        )
        for cell in before.keys() & now.keys()
        if len(before[cell]) == len(now[cell])
    }


def _source_rows(
    spark: Session, path: str, source: Source, at: int, cells: IntervalSet
) -> dict[Interval, list[Row]]:
    return _by_cell(source_content._rows(spark, path, source, at, cells), source)  # type: ignore[arg-type]


def _by_cell(frame: Any, source: Source) -> dict[Interval, list[Row]]:  # noqa: ANN401
    found: dict[Interval, list[Row]] = defaultdict(list)
    for row in frame.collect():
        found[
            cell_of_number(source.cadence, row["_cell"]) if is_cut(source) else WHOLE_CELL
        ].append(row)
    return dict(found)


def _sum(rows: Iterable[Row], names: Sequence[str]) -> int:
    return sum(_hash(*(row[name] for name in names)) for row in rows)


def left_to_delta(path: str, delta_version: int) -> None:
    """Read no file by its name: the session reads Delta tables."""


_REPLACED: tuple[tuple[Any, str, Any], ...] = (
    (layers, "plain_table", left_to_delta),
    (tables, "plain_table", left_to_delta),
    (computed, "contract", contract),
    (computed, "written_cells", written_cells),
    (computed, "rows_written", rows_written),
    (computed, "profile", profile),
    (computed, "failing_rows", failing_rows),
    (audit_run, "profile", profile),
    (audit_run, "failing_rows", failing_rows),
    (outside_rows, "as_json", as_json),
    (samples, "as_json", as_json),
    (source_content, "content_by_cell", content_by_cell),
    (source_content, "_same", same_columns),
)


@contextmanager
def fake_warehouse() -> Iterator[Session]:
    """Let this process compute rows without Spark, and give the session that it then works with."""
    with pytest.MonkeyPatch.context() as patch:
        for place, name, ours in _REPLACED:
            patch.setattr(place, name, ours)
        yield Session()
