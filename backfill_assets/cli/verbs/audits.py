"""`backfill audits`: the latest results of audits of published data."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, Env, Select  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import Heading, print_json, print_table, say
from backfill_assets.intervals.instants import minute_text
from backfill_assets.intervals.text import counted, ranges_text
from backfill_assets.planning.plan.selecting import selected
from backfill_assets.planning.plan.written_options import chosen

if TYPE_CHECKING:
    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.state.published_audits import PublishedAudit

_HEADINGS = (
    Heading("audited at"),
    Heading("model"),
    Heading("audit"),
    Heading("ended"),
    Heading("found", spare=1),
)


def audits(select: Select = None, env: Env = "prod", as_json: AsJson = False) -> None:
    """List the results of audits of published data, the latest first.

    `backfill audit` and the job `audits` of Dagster keep the results of the last 100 runs for each model; `backfill batches` shows the audits of
    batches. Nothing is computed.

    Exit code: 0.

    Example: backfill audits --select commerce.fact_orders

    Example: backfill audits --json
    """
    with looking() as at:
        run = at.published(env)
        rows = [
            (run.graph.model(name).cadence, row)
            for name in selected(run.graph, chosen(select))
            for row in run.store.published_audits.history(env, name)
        ]
    if as_json:
        print_json({"environment": env, "audits": [_json(*row) for row in rows]})
        return
    if rows:
        print_table(_HEADINGS, [_told(row) for _, row in rows])
    for cadence, row in rows:
        if not row.result.passed:
            _say_failed(cadence, row)
    failed = sum(not row.result.passed for _, row in rows)
    say(f"{env}: {counted(len(rows), 'result')}, {failed} failed.")


def _told(row: PublishedAudit) -> tuple[str, ...]:
    result = row.result
    ended = "passed" if result.passed else "failed" if result.blocks else "warned"
    return minute_text(row.audited_at), row.of.model, result.audit, ended, result.found


def _say_failed(cadence: Cadence, row: PublishedAudit) -> None:
    result, over = row.result, ranges_text(cadence, row.of.audited)
    where = f"; cells that fail: {', '.join(result.cells)}" if result.cells else ""
    say(
        f"{row.of.model} {result.audit} at {minute_text(row.audited_at)} over {over}: "
        f"allowed {result.allowed}{where}",
        indent=2,
        style="red" if result.blocks else "yellow",
    )


def _json(cadence: Cadence, row: PublishedAudit) -> dict[str, Any]:
    return {
        "model": row.of.model,
        "audited_at": row.audited_at,
        "audited": ranges_text(cadence, row.of.audited),
        "version": row.of.version,
        "delta_version": row.of.delta_version,
        **asdict(row.result),
    }
