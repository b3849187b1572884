"""`backfill report`: write the ready cells into Dagster's event log, so that its UI agrees."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import err, print_json, say
from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import counted
from backfill_assets.snapshots.environment import PROD

if TYPE_CHECKING:
    from dagster import DagsterInstance

    from backfill_assets.engine.project.run_context import RunContext


def report(as_json: AsJson = False) -> None:
    """Report to Dagster the ready cells that were filled without it.

    Dagster does not see `backfill run`, so its UI shows such cells as missing. Reported are cells without a materialization in
    Dagster, and cells whose content has changed since the last report, as by a promotion or a rollback; also the latest results of
    `backfill audit`, as evaluations of the checks of published data. Nothing is computed.
    Dagster's assets stand for prod: no other environment is reported.

    Exit code: 0, also when there was nothing to report.

    Example: DAGSTER_HOME=$PWD backfill report
    """
    with looking() as at:
        run = at.run(PROD)
        cell_count = tell_dagster(run)
    if as_json:
        print_json({"environment": PROD, "reported": cell_count})
        return
    say(f"{PROD}: {counted(cell_count, 'cell')} reported to Dagster.")


def tell_dagster(run: RunContext) -> int:
    """Report to the instance that DAGSTER_HOME names, with a bar on a terminal.

    Raises:
        RequestError: it is not set, or the instance can't be opened.
    """
    if "DAGSTER_HOME" not in os.environ:
        raise RequestError(
            found="DAGSTER_HOME is not set, so there is no event log to report to",
            do="set it to the folder that holds dagster.yaml, as `export DAGSTER_HOME=$PWD` does there",
        )
    from backfill_assets.orchestration.catching_up import report_ready  # noqa: PLC0415 - slow to start

    columns = (TextColumn("telling Dagster: {task.description}"), BarColumn(), MofNCompleteColumn())
    with (
        _opened() as instance,
        Progress(*columns, console=err, disable=not err.is_terminal) as progress,
    ):
        task = progress.add_task("", total=None)
        return report_ready(
            instance,
            run,
            lambda name, done, total: progress.update(
                task, description=name, completed=done, total=total
            ),
        )


def _opened() -> DagsterInstance:
    """Open the instance; what keeps it closed is of many kinds: its file, a variable, a database that is away."""
    import dagster as dg  # noqa: PLC0415 - two seconds that other verbs must not pay

    try:
        return dg.DagsterInstance.get()
    except Exception as error:
        raise RequestError(
            found=f"Dagster's instance in {os.environ['DAGSTER_HOME']} can't be opened: {error}",
            do="look at its dagster.yaml, and at the variables that it names",
        ) from error
