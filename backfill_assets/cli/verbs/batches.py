"""`backfill batches`: list all batches, or show everything about one of them."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.named_model import model_named
from backfill_assets.cli.options import LARGEST, AsJson, refuse_together, refuse_without
from backfill_assets.cli.output import Heading, print_json, print_table, say
from backfill_assets.cli.project import load_graph, store_looked_at
from backfill_assets.errors import RequestError
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.text import counted
from backfill_assets.render.plan_words import bytes_text, naming_of
from backfill_assets.settings import read_settings
from backfill_assets.snapshots.batch import RUNNING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from backfill_assets.render.plan_words import Naming
    from backfill_assets.snapshots.failure import FailedStart
    from backfill_assets.state.audits import AuditRow
    from backfill_assets.state.batch_rows import BatchRow
    from backfill_assets.state.store import Store

NOT_BEGUN, SILENT = "not begun", "silent"


def _unclear_batch(begins: str, matches: Sequence[str]) -> RequestError:
    many = f"{len(matches)} batches begin with '{begins}': {', '.join(matches[:3])}"
    return RequestError(
        found=many if matches else f"no batch begins with {begins!r}",
        do="`backfill batches` lists them",
    )


def batches(
    batch: Annotated[
        str | None,
        typer.Argument(help="Show everything about this batch: its id, or the first characters."),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="MODEL", help="Only batches of this model.")
    ] = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Only failures whose cells were not built afterwards.")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="With --failed: also failures whose cells were built afterwards."
        ),
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=LARGEST, help="How many batches are shown, newest first.")
    ] = 30,
    as_json: AsJson = False,
) -> None:
    """List batches, or show one batch with its audits and failing rows.

    The newest batches come first. `silent` is one that was heard for the last time longer ago than the lease: its process has died, or sleeps;
    the next run builds its cells. With --failed, the causes that kept a batch from beginning (such as a source without a table) are listed,
    too: the latest for each model. JSON has every field: cells, rows, bytes, start, finish, attempt, error and its kind, Spark settings of its own, code version, plan, run.

    Example: backfill batches --failed

    Example: backfill batches 55346c46

    Example: backfill batches --model commerce.orders --json
    """
    refuse_together(BATCH=batch, model=model)
    refuse_together(BATCH=batch, failed=failed)
    refuse_without("--failed", failed, all=everything)
    settings = read_settings()
    graph = load_graph(settings)
    with store_looked_at(settings) as store:
        if model is not None and store.snapshots.last_model(model) is None:
            model_named(graph, model)
        naming = naming_of(graph, store.snapshots.last_cadence)
        if batch is not None:
            _show(_found(store, naming, batch), as_json=as_json)
            return
        if failed:
            failures = _failures(store, naming, model)
            listed = [row for row, is_overtaken in failures if everything or not is_overtaken]
            hidden = len(failures) - len(listed)
            rows, count = (
                listed[:limit],
                f"{counted(len(listed[:limit]), 'failure')}{_hidden(hidden)}",
            )
        else:
            rows = [_row(naming, row) for row in _latest(store, model, limit)]
            count = counted(len(rows), "batch", "batches")
    if as_json:
        print_json(rows)
        return
    _list(rows, count)


def _latest(store: Store, model: str | None = None, limit: int | None = None) -> list[BatchRow]:
    """Read batches, the latest first; of those that are said to run, the silent ones are told apart."""
    rows = store.batches.latest(model=model, limit=limit)
    running = {row.batch_id for row in rows if row.status == RUNNING}
    silent = running and running - {batch.batch_id for batch in store.limits.in_flight()}
    if not silent:
        return rows
    # One that has ended since has no claim either: its row says so by now.
    return [
        replace(row, status=SILENT) if row.status == RUNNING and row.batch_id in silent else row
        for row in store.batches.latest(model=model, limit=limit)
    ]


def _failures(store: Store, naming: Naming, model: str | None) -> list[tuple[dict[str, Any], bool]]:
    """Give every failure, the latest first, and whether its cells were built since."""
    failures: list[tuple[datetime, dict[str, Any], bool]] = []
    built: dict[str, list[BatchRow]] = {}
    for row in _latest(store, model):
        since = built.setdefault(row.model, [])
        if row.is_committed:
            since.append(row)
        elif row.has_failed:
            later = (other.stretches for other in since if other.version == row.version)
            overtaken = not row.stretches - IntervalSet.union_all(later)
            failures.append((row.started_at, _row(naming, row), overtaken))
    for environment in store.environments.by_name():
        for start in store.failed_starts.of_environment(environment.name).values():
            later = (
                row.stretches for row in built.get(start.model, ()) if row.started_at >= start.at
            )
            overtaken = not start.cells - IntervalSet.union_all(later)
            if model in (None, start.model):
                row = _start_row(naming, environment.name, start)
                failures.append((start.at, row, overtaken))
    failures.sort(key=lambda failure: failure[0], reverse=True)
    return [(row, overtaken) for _, row, overtaken in failures]


def _start_row(naming: Naming, environment: str, start: FailedStart) -> dict[str, Any]:
    span = start.cells.span()
    return dict.fromkeys(_FIELDS) | {
        "batch_id": "",
        "model": start.model,
        "cells": naming.ranges(start.model, start.cells),
        "start": span.start.isoformat(),
        "end": span.end.isoformat(),
        "status": NOT_BEGUN,
        "started_at": start.at.isoformat(),
        "attempt": 0,
        "error": start.error,
        "failure": start.kind.value,
        "run_id": start.run_id,
        "environment": environment,
        "who": start.who,
    }


def _hidden(count: int) -> str:
    return f"; {count} more whose cells were built since: --all" if count else ""


def _row(naming: Naming, row: BatchRow) -> dict[str, Any]:
    finished = row.finished_at
    span = row.stretches.span()
    return {
        "batch_id": row.batch_id,
        "model": row.model,
        "cells": naming.ranges(row.model, row.stretches),
        "start": span.start.isoformat(),
        "end": span.end.isoformat(),
        "status": row.status,
        "reason": row.reason,
        "rows": row.rows,
        "bytes": row.bytes_written,
        "started_at": row.started_at.isoformat(),
        "finished_at": finished.isoformat() if finished else None,
        "seconds": (finished - row.started_at).total_seconds() if finished else None,
        "attempt": row.attempt,
        "error": row.error,
        "failure": row.failure.value if row.failure else None,
        "resources": row.resources,
        "code_version": row.fingerprint,
        "plan_id": row.plan_id,
        "run_id": row.run_id,
        "root_id": row.root_id,
        "environment": row.environment,
        "version": row.version,
        "delta_version": row.delta_version,
        "who": row.who,
    }


_FIELDS = (
    "batch_id", "model", "cells", "start", "end", "status", "reason", "rows", "bytes", "started_at",
    "finished_at", "seconds", "attempt", "error", "failure", "resources", "code_version", "plan_id",
    "run_id", "root_id", "environment", "version", "delta_version", "who",
)  # fmt: skip
"""The fields of a batch in JSON, in their order."""


_HEADINGS = (
    Heading("batch"),
    Heading("model"),
    Heading("cells"),
    Heading("status"),
    Heading("rows", number=True, spare=1),
    Heading("size", number=True, spare=4),
    Heading("seconds", number=True, spare=2),
    Heading("try", number=True, spare=3),
    Heading("started (UTC)", spare=5),
    Heading("run", spare=6),
)


def _list(rows: list[dict[str, Any]], count: str) -> None:
    if rows:
        print_table(_HEADINGS, [_cells(row) for row in rows])
    errors = [row for row in rows if row["error"]]
    for row in errors:
        text = " ".join(row["error"].split())
        named = row["batch_id"][:8] or row["status"]
        say(f"{named} {row['model']} {row['cells']}: {text}", indent=2, style="red")
    begun = [row["batch_id"] for row in errors if row["batch_id"]]
    if begun:
        say(f"Next: backfill batches {begun[0][:8]}")
    say(f"{count}.")


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        row["batch_id"][:8],
        row["model"],
        row["cells"],
        row["status"],
        "" if row["rows"] is None else f"{row['rows']:,}",
        "" if row["bytes"] is None else bytes_text(row["bytes"]),
        "" if row["seconds"] is None else f"{row['seconds']:.1f}",
        str(row["attempt"] or ""),
        row["started_at"][:19].replace("T", " "),
        row["run_id"],
    )


def _found(store: Store, naming: Naming, begins: str) -> dict[str, Any]:
    """Give everything about the only batch whose id begins like this.

    Raises:
        RequestError: there is no such batch, or there are several.
    """
    rows = [row for row in _latest(store) if row.batch_id.startswith(begins)]
    if len(rows) != 1:
        raise _unclear_batch(begins, [row.batch_id for row in rows])
    audits = store.batches.audit_results(batch_id=rows[0].batch_id)
    return {
        **_row(naming, rows[0]),
        "inputs": [asdict(replace(pin, path=store.located(pin.path))) for pin in rows[0].inputs],
        "audits": [_audit(row) for row in audits],
    }


def _audit(row: AuditRow) -> dict[str, Any]:
    return {"attempt": row.audited.attempt, **asdict(row.result)}


_LISTED = ("inputs", "audits", "resources")


def _show(batch: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(batch)
        return
    plain = {name: value for name, value in batch.items() if name not in _LISTED}
    width = max(map(len, plain))
    for name, value in plain.items():
        if value is not None:
            say(f"{name:<{width}}  {value}", indent=width + 2)
    for key, setting in (batch["resources"] or {}).items():
        say(f"{'spark':<{width}}  {key} = {setting}", indent=width + 2)
    for pin in batch["inputs"]:
        say(f"{'read':<{width}}  {pin['upstream']} at delta_version {pin['delta_version']}")
    for audit in batch["audits"]:
        word = "passed" if audit["passed"] else f"FAILED ({audit['severity']})"
        text = f"{audit['audit']}: {word}: found {audit['found']}, allowed {audit['allowed']}"
        say(f"{'audit':<{width}}  {text}", indent=width + 2)
        for row in audit["sample"]:
            say(f"{'row':<{width}}  {row}", indent=width + 2)
    say(f"{counted(len(batch['audits']), 'audit')}.")
