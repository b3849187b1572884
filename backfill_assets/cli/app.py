"""The `backfill` command: one verb, one file."""

from __future__ import annotations

import sys

import typer

from backfill_assets.cli import audit, batches, run, state, status, why
from backfill_assets.cli.output import err
from backfill_assets.errors import BackfillAssetsError

app = typer.Typer(
    name="backfill",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Fill, check and explain the history of time-partitioned models.",
)
app.command()(run.run)
app.command()(status.status)
app.command()(why.why)
app.command()(batches.batches)
app.command()(audit.audit)
app.add_typer(state.app, name="state")


def main() -> None:
    """Run a command; a mistake of the user's ends in one line, without a traceback."""
    try:
        app()
    except BackfillAssetsError as error:
        err.print(f"error: {error}", markup=False, soft_wrap=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
