"""`backfill state`: rebuild the ready records of the state from the tables' own commits."""

from __future__ import annotations

from dataclasses import asdict

import typer

from backfill_assets.cli.lazy_commands import Helping
from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import Heading, print_json, print_table, say
from backfill_assets.cli.project import load_graph, make_store
from backfill_assets.engine.upkeep.state_rebuild import read_logs, rebuild_state
from backfill_assets.intervals.text import counted
from backfill_assets.settings import read_settings

app = typer.Typer(cls=Helping, add_completion=False, rich_markup_mode=None)


@app.callback()
def state() -> None:
    """Look after the state database."""


@app.command()
def rebuild(as_json: AsJson = False) -> None:
    """Recreate the ready records from the tables' own commits, into an empty state.

    Move a damaged state file aside first, with its -wal and -shm, which may hold the last of it: the command never writes into a state that is not
    empty.

    Example: mkdir data/old && mv data/state.db* data/old && backfill state rebuild
    """
    settings = read_settings()
    graph = load_graph(settings)
    logs = read_logs(graph, settings.data_root)  # first: where it fails, no empty state is left
    with make_store(settings) as store:
        rebuilt = rebuild_state(store, graph, logs)
    if as_json:
        print_json(asdict(rebuilt))
        return
    rows = [(version, f"{batches:,}") for version, batches in rebuilt.batches.items()]
    if rows:
        print_table((Heading("version"), Heading("batches", number=True)), rows)
    for left_out in rebuilt.left_out:
        say(str(left_out))
    for model in rebuilt.unsure:
        say(
            f"{model}: its last batches ran a definition, its own or upstream of it, that is not loaded and that no "
            "log holds, so prod runs the one that its table was made for. Load the code that prod ran, and rebuild "
            "into an empty state again; or publish what is loaded with `backfill plan`"
        )
    batches, tables = sum(rebuilt.batches.values()), counted(len(rebuilt.batches), "table")
    say("Next: backfill status")
    say(f"{counted(batches, 'batch', 'batches')} of {tables} rebuilt.")
