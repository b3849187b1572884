"""What must hold once everything has started again by itself: each check says what it found wrong."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from deltalake import DeltaTable
from pyarrow import parquet

from backfill_assets import resolve
from backfill_assets.engine.project.opening import look
from backfill_assets.engine.upkeep.collecting import collect
from backfill_assets.engine.upkeep.state_rebuild import read_logs, rebuild_state
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.state.store import Store
from backfill_assets.warehouse.log.ticket import FENCED
from backfill_assets_tests.faults.ledger import LEASE, cells_at
from backfill_assets_tests.faults.oracle import MODELS
from backfill_assets_tests.faults.readers import differences
from backfill_assets_tests.making import project_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from backfill_assets_tests.faults.ledger import Ledger
    from backfill_assets_tests.faults.oracle import World

Rows = list[dict[str, Any]]


def ask(url: str, query: str) -> Rows:
    """Ask a state, past the product."""
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    try:
        with closing(engine.connect()) as found:
            return [dict(row) for row in found.execute(sa.text(query)).mappings()]
    finally:
        engine.dispose()


def whole(ledger: Ledger, expected: World) -> Iterator[str]:
    """Nothing is lost, nothing doubled, nothing left open."""
    yield from published(ledger, expected)
    yield from recorded(ledger, expected)
    yield from logged(ledger)


def published(ledger: Ledger, expected: World) -> Iterator[str]:
    """Prod's tables hold what the oracle says."""
    found: World = {}
    for name in MODELS:
        at = resolve(name, settings=ledger.settings)
        found[name] = cells_at(name, at.path, at.delta_version)
    if found != expected:
        yield f"published tables are not the oracle's: {differences(found, expected)}"


def recorded(ledger: Ledger, expected: World) -> Iterator[str]:
    """Each cell has exactly one valid record at its pin; nothing is open, claimed or unknown."""
    url = ledger.settings.state
    for name, cells in expected.items():
        records = ask(url, _AT_PIN.format(model=name))
        times = Counter(row["starts"] for row in records)
        twice = [start for start, count in times.items() if count > 1]
        if twice:
            yield f"{name}: {len(twice)} cells are recorded twice, first {twice[0]}"
        if len(times) != len(cells):
            yield f"{name}: {len(times)} cells are recorded instead of {len(cells)}"
    heard_after = int((ledger.now() - LEASE) * 1_000_000)
    for what, query in _NOTHING_OF.items():
        rows = ask(url, query.format(heard_after=heard_after))
        if rows:
            yield f"{len(rows)} {what} stay: {rows[0]}"


def tables(ledger: Ledger) -> dict[Path, dict[str, Any]]:
    """Read what the state says of each table, by the folder it lies in."""
    rows = ask(ledger.settings.state, "SELECT version, path, known_head FROM versions")
    return {ledger.data / row["path"]: row for row in rows}


def _has_log(folder: Path) -> bool:
    return (folder / "_delta_log").exists()


def logged(ledger: Ledger) -> Iterator[str]:
    """The state knows each table to its head; no batch is there twice, unrecorded, or too late."""
    url = ledger.settings.state
    committed = {
        row["batch_id"]
        for row in ask(url, "SELECT batch_id FROM batches WHERE status = 'committed'")
    }
    closed = {row["number"] for row in ask(url, _CLOSED)}
    there = {folder: row for folder, row in tables(ledger).items() if _has_log(folder)}
    if not there:
        yield "the state names no table that is there"
    for folder, row in there.items():
        history = list(DeltaTable(str(folder)).history())
        # A fence holds nothing: whoever takes the table next accounts for it.
        unknown = [
            entry["version"]
            for entry in history
            if entry["version"] > row["known_head"] and entry.get("userMetadata") != FENCED
        ]
        if unknown:
            yield f"{row['version']}: commits {unknown} are not known, only {row['known_head']}"
        said = [
            commit for commit in map(_said, sorted(history, key=_version)) if commit is not None
        ]
        tokens = [commit.token for commit in said]
        if tokens != sorted(tokens):
            yield f"{row['version']}: an old holder has committed after a new one: {tokens}"
        for batch, times in Counter(commit.batch_id for commit in said).items():
            if times > 1:
                yield f"{row['version']}: batch {batch} was committed {times} times"
            # A copy names its plan, the number of its publication, and its model.
            number = batch.split(":")[1:2]
            if batch not in committed and not (number and int(number[0]) in closed):
                yield f"{row['version']}: batch {batch} is in the log, but not recorded"


def _version(commit: dict[str, Any]) -> int:
    return commit["version"]


def _said(commit: dict[str, Any]) -> BatchCommit | None:
    return BatchCommit.from_json(commit.get("userMetadata"))


def collected(ledger: Ledger, spark: SparkSession) -> Iterator[str]:
    """After `gc`, which passes over no table, there is no file that nobody needs."""
    later = datetime.fromtimestamp(ledger.now(), UTC) + timedelta(days=30)
    for number in range(2):  # tables of what has just expired go with the second one
        now = later + timedelta(days=2 * number)
        with Store.open(
            ledger.settings.state,
            clock=lambda: now,  # noqa: B023
            lease_seconds=LEASE,
            data_root=str(ledger.data),
        ) as store:
            project = project_of(
                store,
                ledger.graph(),
                clock=lambda: now,  # noqa: B023
                data_root=ledger.data,
                spark=lambda: spark,
                run_id=f"gc-{number}",
            )
            for passed in collect(look(project, "prod"), timedelta(0)).passed_over:
                yield f"gc has left {passed.version} alone: {passed.why}"
    known = tables(ledger)
    for folder in sorted((ledger.data / "tables").glob("*/*")):
        if folder not in known:
            yield f"the table {folder.name} is there, but nobody knows it"
            continue
        yield from _orphans(ledger, folder)
        yield from _piled_up(ledger, folder)


def _orphans(ledger: Ledger, folder: Path) -> Iterator[str]:
    if not _has_log(folder):
        yield f"{folder.name} is a folder without a log"
        return
    pins = ask(
        ledger.settings.state,
        f"SELECT p.delta_version FROM pointers p WHERE p.version = '{folder.name}'",  # noqa: S608 - a test's
    )
    head = DeltaTable(str(folder)).version()
    first = min((row["delta_version"] for row in pins), default=head)
    needed = {
        uri.removeprefix(f"{folder}/")
        for version in range(max(first, 0), head + 1)
        for uri in DeltaTable(str(folder), version=version).file_uris()
    }
    found = (str(file.relative_to(folder)) for file in folder.rglob("*.parquet"))
    there = {name for name in found if not name.startswith("_delta_log/")}
    if there - needed:
        yield f"{folder.name}: {len(there - needed)} orphan files after gc, {min(there - needed)}"
    if needed - there:
        yield f"{folder.name}: {len(needed - there)} files that are read are gone"
    strays = [file.name for file in folder.rglob("*.tmp") if file.is_file()]
    if strays:
        yield f"{folder.name}: {len(strays)} half-written files after gc, {strays[0]}"


def _piled_up(ledger: Ledger, folder: Path) -> Iterator[str]:
    """Cells finer than a day share files: each is of one day, and each day that is read has one."""
    asked = f"SELECT delta_version FROM pointers WHERE environment = 'prod' AND version = '{folder.name}'"  # noqa: S608 - a test's
    for row in ask(ledger.settings.state, asked):
        table = DeltaTable(str(folder), version=row["delta_version"])
        if not table.metadata().partition_columns:
            yield from _piled_up_at(table, folder)


def _piled_up_at(table: DeltaTable, folder: Path) -> Iterator[str]:
    reaches = [_days_of(uri) for uri in table.file_uris()]
    if any(len(days) > 1 for days in reaches):
        yield f"{folder.name}: a file holds rows of several days, {max(reaches, key=len)}"
    for day, files in sorted(Counter(day for days in reaches for day in days).items()):
        if files > 1:
            yield f"{folder.name}: {files} files of {day} after gc, which joins them"


def _days_of(file: str) -> set[date]:
    held = parquet.read_table(file, columns=["_cell"])["_cell"].to_pylist()
    return {cell.date() for cell in held}


def rebuilt(ledger: Ledger) -> Iterator[str]:
    """A state made from the tables' own commits holds the same ready records."""
    again = ledger.folder / "again.db"
    again.unlink(missing_ok=True)
    url = f"sqlite:///{again}"
    with Store.open(
        url, clock=lambda: datetime.now(UTC), lease_seconds=LEASE, data_root=str(ledger.data)
    ) as store:
        rebuild_state(store, ledger.graph(), read_logs(ledger.graph(), str(ledger.data)))
    was, now = (_ready(of) for of in (ledger.settings.state, url))
    if was != now:
        lost, new = sorted(set(was) - set(now)), sorted(set(now) - set(was))
        other = [key for key in set(was) & set(now) if was[key] != now[key]]
        yield (
            f"rebuilt state: {len(lost)} records lost, {len(new)} new, {len(other)} other; "
            + str((lost or new or other)[:2])
        )


def _ready(url: str) -> dict[tuple[str, int], str]:
    """What is ready in each table, and what it holds."""
    return {(row["version"], row["starts"]): str(row["content"]) for row in ask(url, _VALID)}


_AT_PIN = (
    "SELECT r.starts FROM ready_records r JOIN pointers p ON p.version = r.version "
    "WHERE p.environment = 'prod' AND p.model = '{model}' AND r.valid_from <= p.delta_version "
    "AND (r.valid_to IS NULL OR r.valid_to > p.delta_version)"
)
_CLOSED = "SELECT number FROM promotions WHERE status <> 'open'"
_VALID = "SELECT version, starts, content FROM ready_records WHERE valid_to IS NULL"
_NOTHING_OF = {
    "claims": "SELECT batch_id, starts FROM claims",
    # One of a dead holder may stay: it lapses, and whoever wants the table next takes it over.
    "live commit locks": "SELECT version, holder FROM commit_locks "
    "WHERE holder IS NOT NULL AND heartbeat_at > {heard_after}",
    "open promotions": "SELECT number, plan_id FROM promotions WHERE status = 'open'",
    "running batches": "SELECT batch_id, model FROM batches "
    "WHERE status NOT IN ('committed', 'failed', 'abandoned')",
}
