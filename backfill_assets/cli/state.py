"""`backfill state`: look after the state database."""

from __future__ import annotations

from typing import Annotated

import typer

from backfill_assets.cli.output import out, print_json
from backfill_assets.cli.project import load_graph, now
from backfill_assets.execution.state_rebuild import rebuild_state
from backfill_assets.settings import Settings
from backfill_assets.state.store import Store

app = typer.Typer(no_args_is_help=True, help="Look after the state database.")


@app.callback()
def state() -> None:
    """Look after the state database."""


@app.command()
def rebuild(
    as_json: Annotated[bool, typer.Option("--json", help="JSON alone on stdout")] = False,
) -> None:
    """Recreate the ready records from the tables' own commits, into an empty state.

    Move a damaged state file aside first; this never writes into one that holds something.

    Example: mv data/state.db data/state.db.old && backfill state rebuild
    """
    settings = Settings()
    store = Store.open(settings.state, clock=now, lease_seconds=settings.lease_seconds)
    try:
        found = rebuild_state(store, load_graph(settings), data_root=settings.data_root)
    finally:
        store.close()
    if as_json:
        print_json(found)
        return
    for version, batches in found.items():
        out.print(f"{version}: {batches} batches")
    out.print(f"{sum(found.values())} batches of {len(found)} tables rebuilt.")
