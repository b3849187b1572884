"""`backfill audit`: the audits alone, over what is published; for CI."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.output import err, out, print_json, print_table
from backfill_assets.cli.project import opened_run
from backfill_assets.cli.selecting import selected
from backfill_assets.execution.audit_run import audit_published

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.audit_result import AuditResult


def audit(
    select: Annotated[str, typer.Option(help="models, comma separated; all by default")] = "",
    env: Annotated[str, typer.Option(help="the environment")] = "prod",
    as_json: Annotated[bool, typer.Option("--json", help="JSON alone on stdout")] = False,
) -> None:
    """Run every audit over published data, without rebuilding it.

    Exit code 0 when no blocking audit fails, 1 otherwise.

    Example: backfill audit --select commerce.fact_orders
    """
    results: dict[str, tuple[AuditResult, ...]] = {}
    with opened_run(env) as run:
        for name in selected(run.graph, select):
            err.print(f"auditing {name}")
            results[name] = audit_published(run, name)
    if as_json:
        print_json({name: [asdict(one) for one in found] for name, found in results.items()})
    else:
        _print(results)
    if any(one.blocks for found in results.values() for one in found):
        raise typer.Exit(1)


def _print(results: Mapping[str, tuple[AuditResult, ...]]) -> None:
    every = [(name, one) for name, found in results.items() for one in found]
    failed = [(name, one) for name, one in every if not one.passed]
    if failed:
        print_table(
            ("model", "audit", "severity", "found", "allowed", "cells"),
            [
                (name, one.audit, one.severity.value, one.found, one.allowed, ", ".join(one.cells))
                for name, one in failed
            ],
        )
        for name, one in failed:
            for row in one.sample[:3]:
                out.print(f"{name} {one.audit}: {row}", markup=False)
    without = [name for name, found in results.items() if not found]
    if without:
        out.print(f"Nothing is published yet of: {', '.join(without)}")
    blocking = sum(one.blocks for _, one in failed)
    out.print(
        f"{len(every)} audits of {len(results)} models: {len(every) - len(failed)} passed, "
        f"{blocking} blocking and {len(failed) - blocking} warning ones failed."
    )
