"""`backfill adopt`: copy a table that another system wrote into a model's history."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.asking import Yes, confirm
from backfill_assets.cli.named_model import cells_named, model_named
from backfill_assets.cli.operating import operating
from backfill_assets.cli.options import AsJson, Env  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import err, print_json, say
from backfill_assets.cli.progress import shown
from backfill_assets.cli.telling import tell_quietly
from backfill_assets.engine.batch.effects import Effects
from backfill_assets.engine.batch.judge import judge
from backfill_assets.engine.batch.requests import ADOPTED
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.project.events import Committed, Failed, Waiting
from backfill_assets.engine.review.acting import acting
from backfill_assets.intervals.required import required
from backfill_assets.intervals.text import counted, ranges_text
from backfill_assets.models.audits_of import audits_of
from backfill_assets.planning.review.approval import Act
from backfill_assets.warehouse.files.tables import table_now
from backfill_assets.warehouse.rows.adoption import adopted_from, profile_table
from backfill_assets.warehouse.spark.session import batch_session

if TYPE_CHECKING:
    from backfill_assets.engine.project.events import Event
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table


def adopt(  # noqa: PLR0913, PLR0917 - one option for each thing that can be asked
    table: Annotated[str, typer.Argument(help="Folder or URI of the Delta table.")],
    model: Annotated[str, typer.Argument(help="Such as marketing.campaign_performance.")],
    cells: Annotated[
        str | None,
        typer.Option(metavar="A..B", help="Only these of the cells with rows."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only audit; write nothing.")] = False,
    env: Env = "prod",
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Audit an existing Delta table against a model, and record its cells without recomputing them.

    The rows are copied once into a table of this project, cut into cells, through the same audits and commits as any batch. Cells that are
    already ready are not changed; a batch that fails a blocking audit is not recorded. A cell of which the table holds no row is not
    recorded as empty: it stays missing.

    Exit code: 0 when every cell asked for is ready, 1 when a batch failed or cells are missing; with --dry-run, when a blocking audit failed.

    Example: backfill adopt /lake/legacy/campaigns marketing.campaign_performance --dry-run

    Example: backfill adopt /lake/legacy/campaigns marketing.campaign_performance --cells 2024-01-01..2024-06-30 --yes
    """
    path = table if "://" in table else str(Path(table).resolve())
    with operating() as at:
        at.may_change(env)
        declared = model_named(at.graph, model)
        if not dry_run:  # the audits may take long
            acting(at.project, Act.ADOPT, env, env)
        say(f"auditing {path} against {model}", to=err)
        audited = _audited(at.run(env), declared, table_now(path), cells)
        if dry_run:
            _report_audits(audited, as_json=as_json)
            if any(audit.blocks for audit in audited.audits):
                raise typer.Exit(1)
            return
        missing = declared.cadence.count(audited.missing)
        if missing:
            confirm(
                f"record {counted(missing, 'cell')} of {model} in {env} with rows of {path}",
                yes=yes,
            )
        events = _adopted(at.filling(env), audited)
        remaining = (audited.missing | audited.without_rows) - at.run(env).view().ready(model)
        tell_quietly(at, env)
    _report(audited, events, remaining, env, as_json=as_json)
    if remaining:
        raise typer.Exit(1)


def _adopted(run: RunContext, audited: _AuditedTable) -> tuple[Event, ...]:
    """Copy the rows of the missing cells, and show the progress."""
    name, cells = audited.model.name, audited.missing
    copying = replace(run.project, effects=Effects(rows=adopted_from(audited.table)))
    adopting = replace(run, project=copying, fills=ADOPTED)
    with shown(run.graph, {name: audited.model.cadence.count(cells)}) as listener:
        return fill_cells(adopting, {name: cells}, listener)[name]


@dataclass(frozen=True, slots=True)
class _AuditedTable:
    """The content of a table, as a model's cells.

    Attributes:
        model: whose cells they are.
        table: the table at a pin.
        cells: those that are asked for and of which the table holds rows.
        missing: those of them that are due and not ready.
        without_rows: those that are asked for, due and not ready, and of which the table holds no row.
        audits: what the audits found.
        left_out: audits that compare with an upstream.
    """

    model: Model
    table: Table
    cells: IntervalSet
    missing: IntervalSet
    without_rows: IntervalSet
    audits: tuple[AuditResult, ...]
    left_out: tuple[str, ...]


def _audited(run: RunContext, model: Model, table: Table, cells: str | None) -> _AuditedTable:
    profiled = profile_table(batch_session(run.spark()), model, table)
    results = judge(audits_of(profiled.audited), profiled.profiles, {}, model.cadence)
    requested_cells = profiled.cells
    if cells is not None:
        requested_cells = cells_named(model.cadence, cells)
    due = required(model.cadence, now=run.clock())
    lacking = (requested_cells & due) - run.view().ready(model.name)
    return _AuditedTable(
        model,
        table,
        requested_cells & profiled.cells,
        lacking & profiled.cells,
        lacking - profiled.cells,
        tuple(results),
        profiled.left_out,
    )


def _report_audits(audited: _AuditedTable, *, as_json: bool) -> None:
    if as_json:
        print_json({**_plain(audited), "audits": [asdict(audit) for audit in audited.audits]})
        return
    for audit in audited.audits:
        word = "passed" if audit.passed else "FAILED"
        say(f"{word} {audit.audit}: found {audit.found}, allowed {audit.allowed}", indent=2)
    for name in audited.left_out:
        say(f"later  {name}: compares with an upstream; each batch runs it", indent=2)
    failed = sum(not audit.passed for audit in audited.audits)
    cells = counted(audited.model.cadence.count(audited.cells), "cell")
    missing = audited.model.cadence.count(audited.missing)
    _say_without_rows(audited)
    say("Nothing has been written.")
    say(
        f"{audited.model.name}: {cells} found, {missing:,} to adopt, {counted(failed, 'audit')} failed."
    )


def _say_without_rows(audited: _AuditedTable) -> None:
    if audited.without_rows:
        cadence = audited.model.cadence
        cells = ranges_text(cadence, audited.without_rows)
        say(f"no rows in the table, not adopted: {cells}", indent=2)


def _plain(audited: _AuditedTable) -> dict[str, Any]:
    name = audited.model.cadence
    return {
        "model": audited.model.name,
        "table": audited.table.path,
        "delta_version": audited.table.delta_version,
        "cells": ranges_text(name, audited.cells, 1000),
        "missing": ranges_text(name, audited.missing, 1000),
        "without_rows": ranges_text(name, audited.without_rows, 1000),
    }


def _report(
    audited: _AuditedTable,
    events: tuple[Event, ...],
    remaining: IntervalSet,
    env: str,
    *,
    as_json: bool,
) -> None:
    done = [event for event in events if isinstance(event, Committed)]
    failed = [event for event in events if isinstance(event, Failed)]
    count = audited.model.cadence.count
    if as_json:
        lacking = ranges_text(audited.model.cadence, remaining, 1000)
        errors = [failure.error for failure in failed]
        print_json({**_plain(audited), "batches": len(done), "errors": errors, "left": lacking})
        return
    for event in events:
        if isinstance(event, Waiting):
            say(f"waits for {event.waits_for}; adopt the remaining cells afterwards", indent=2)
    _say_without_rows(audited)
    say("Next: backfill batches --failed" if failed else f"Next: backfill status --env {env}")
    adopted = count(audited.missing - remaining)
    say(
        f"{audited.model.name}: {counted(adopted, 'cell')} adopted in "
        f"{counted(len(done), 'batch', 'batches')}, {count(remaining):,} left."
    )
