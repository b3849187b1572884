"""`backfill audit`: run the audits alone over the published cells; for CI."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from backfill_assets.cli.options import AsJson, Env, Select  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import Heading, counted, print_json, print_table, say
from backfill_assets.cli.project import looked_at
from backfill_assets.cli.selecting import selected
from backfill_assets.engine.batch.audit_run import audit_published
from backfill_assets.engine.project.at_work import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.audit_result import AuditResult

_ROWS = 3


def audit(select: Select = "", env: Env = "prod", as_json: AsJson = False) -> None:
    """Run every audit over published data, without rebuilding it.

    Exit code: 0 when no blocking audit fails, 1 otherwise.

    Example: backfill audit

    Example: backfill audit --select commerce.fact_orders --json
    """
    results: dict[str, tuple[AuditResult, ...]] = {}
    with looked_at(env) as run:
        names = selected(run.graph, select)
        with run.at_work.at(Phase.CHECKING, of=len(names)) as step:
            for name in names:
                step.next(name)
                results[name] = audit_published(run, name)
    blocking = sum(result.blocks for audited in results.values() for result in audited)
    if as_json:
        models = {name: [asdict(result) for result in audited] for name, audited in results.items()}
        print_json({"environment": env, "blocking": blocking, "models": models})
    else:
        _print(env, results, blocking)
    if blocking:
        raise typer.Exit(1)


_HEADINGS = (
    Heading("model"),
    Heading("audit"),
    Heading("severity", spare=1),
    Heading("failing rows", number=True, spare=2),
)


def _print(env: str, results: Mapping[str, tuple[AuditResult, ...]], blocking: int) -> None:
    every = [(name, result) for name, audited in results.items() for result in audited]
    failed = [(name, result) for name, result in every if not result.passed]
    if failed:
        print_table(
            _HEADINGS,
            [
                (name, result.audit, result.severity.value, f"{result.failing_rows:,}")
                for name, result in failed
            ],
        )
    for name, result in failed:
        where = f" in {', '.join(result.cells)}" if result.cells else ""
        text = f"{name} {result.audit}: found {result.found}, allowed {result.allowed}{where}"
        say(text, indent=2, style="red" if result.blocks else "yellow")
        for row in result.sample[:_ROWS]:
            say(f"  row {row}", indent=6)
    without = [name for name, audited in results.items() if not audited]
    if without:
        say(f"nothing is published yet of {', '.join(without)}", indent=2)
    say(
        f"{env}: {counted(len(every), 'audit')} of {counted(len(results), 'model')}: "
        f"{len(every) - len(failed)} passed, {blocking} blocking and {len(failed) - blocking} "
        "warning ones failed."
    )
