"""`backfill batches`: what every batch did."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.output import out, print_json, print_table
from backfill_assets.cli.project import opened_run

if TYPE_CHECKING:
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.state.batches import BatchRow


def batches(
    model: Annotated[str | None, typer.Option(help="only of this model")] = None,
    limit: Annotated[int, typer.Option(help="how many, newest first")] = 30,
    env: Annotated[str, typer.Option(help="the environment")] = "prod",
    as_json: Annotated[bool, typer.Option("--json", help="JSON alone on stdout")] = False,
) -> None:
    """List batches, newest first: range, rows, bytes, times, attempts, error, code, plan, run.

    Example: backfill batches --model commerce.orders --json
    """
    with opened_run(env) as run:
        if model is not None:
            run.graph.model(model)
        rows = [_row(run, row) for row in run.store.batches(model=model, limit=limit)]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("batch", "model", "cells", "status", "rows#", "bytes#", "s#", "try#", "run", "error"),
        [
            (
                row["batch_id"],
                row["model"],
                row["cells"],
                row["status"],
                _number(row["rows"]),
                _number(row["bytes"]),
                _number(row["seconds"], ".1f"),
                str(row["attempt"]),
                row["run_id"],
                row["error"] or "",
            )
            for row in rows
        ],
    )
    out.print(f"{len(rows)} batches.")


def _row(run: RunContext, row: BatchRow) -> dict[str, Any]:
    known = run.graph.models.get(row.model)
    finished = row.finished_at
    return {
        "batch_id": row.batch_id,
        "model": row.model,
        "cells": _cells(known, row),
        "start": row.interval.start.isoformat(),
        "end": row.interval.end.isoformat(),
        "status": row.status,
        "reason": row.reason,
        "rows": row.rows,
        "bytes": row.bytes_written,
        "started_at": row.started_at.isoformat(),
        "finished_at": finished.isoformat() if finished else None,
        "seconds": (finished - row.started_at).total_seconds() if finished else None,
        "attempt": row.attempt,
        "error": row.error,
        "code_version": row.fingerprint,
        "plan_id": row.plan_id,
        "run_id": row.run_id,
    }


def _cells(model: Any, row: BatchRow) -> str:  # noqa: ANN401
    from backfill_assets.intervals.interval_set import IntervalSet  # noqa: PLC0415
    from backfill_assets.intervals.text import ranges_text  # noqa: PLC0415

    if model is None:
        return str(row.interval)
    return ranges_text(model.cadence, IntervalSet.of([row.interval]))


def _number(value: float | None, form: str = ",") -> str:
    return "" if value is None else format(value, form)
