"""`backfill audit`: run the audits alone over the published cells; for CI."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.options import AsJson, Env, Select  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import Heading, counted, err, print_json, print_table, say
from backfill_assets.cli.project import looked_at
from backfill_assets.cli.selecting import selected
from backfill_assets.engine.batch.audit_run import audit_published
from backfill_assets.engine.project.at_work import Phase
from backfill_assets.errors import RequestError
from backfill_assets.models.audits_of import audits_of
from backfill_assets.render.junit import junit_xml

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.audit_result import AuditResult

_ROWS = 3


def audit(
    select: Select = "",
    env: Env = "prod",
    junit: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the results here too, as JUnit XML for CI."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run every audit over published data, without rebuilding it.

    Exit code: 0 when no blocking audit fails, 1 otherwise.

    Example: backfill audit

    Example: backfill audit --select commerce.fact_orders --json

    Example: backfill audit --junit audits.xml
    """
    results: dict[str, tuple[AuditResult, ...]] = {}
    with looked_at(env) as run:
        names = selected(run.graph, select)
        _announce(run, names)
        with run.at_work.at(Phase.CHECKING, of=len(names)) as step:
            for name in names:
                step.next(name)
                results[name] = audit_published(run, name)
    blocking = sum(result.blocks for audited in results.values() for result in audited)
    if junit is not None:
        _write(junit, junit_xml(results))
    if as_json:
        models = {name: [asdict(result) for result in audited] for name, audited in results.items()}
        print_json({"environment": env, "blocking": blocking, "models": models})
    else:
        _print(env, results, blocking)
    if blocking:
        raise typer.Exit(1)


def _write(file: Path, xml: bytes) -> None:
    try:
        file.write_bytes(xml)
    except OSError as error:
        raise RequestError(
            found=f"{file} can't be written: {error.strerror or error}",
            do="give --junit another file; the audits were made, nothing else was written",
        ) from error


def _announce(run: RunContext, names: Sequence[str]) -> None:
    """Say what the audit is before its first step; nothing where nothing of its models is published."""
    view = run.view()
    published = [name for name in names if view.ready(name)]
    if not published:
        return
    audits = sum(len(audits_of(run.graph.models[name])) for name in published)
    say(
        f"audit of {run.environment.name}: {counted(audits, 'audit')} of "
        f"{counted(len(published), 'model')} over all that is published; nothing is written",
        to=err,
    )


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
