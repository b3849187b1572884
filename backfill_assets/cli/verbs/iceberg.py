"""`backfill iceberg`: let engines read what environments publish by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from backfill_assets.cli.lazy_commands import Helping
from backfill_assets.cli.operating import looking, operating
from backfill_assets.cli.options import AsJson  # noqa: TC001 - typer reads it
from backfill_assets.cli.output import print_json, say
from backfill_assets.engine.project.iceberg import CATALOGUE, enable as enable_catalogue
from backfill_assets.intervals.text import counted
from backfill_assets.snapshots.environment import PROD

if TYPE_CHECKING:
    from backfill_assets.state.iceberg import Named

app = typer.Typer(cls=Helping, add_completion=False, rich_markup_mode=None)


@app.callback()
def iceberg() -> None:
    """Let engines read what environments publish by name."""


@app.command()
def enable(
    name: Annotated[
        str, typer.Option(help="The catalogue's own name, by which its readers open it.")
    ] = CATALOGUE,
    as_json: AsJson = False,
) -> None:
    """Make the state an Iceberg catalogue: every publication moves its names, in the same transaction.

    Nothing is copied: the catalogue uses the Parquet files of the Delta tables. It costs less than 0.1 s
    per batch. Readers can't write through it.

    Example: backfill iceberg enable
    """
    with operating() as at:
        _tell(name, enable_catalogue(at.run(PROD), name), as_json=as_json)


@app.command()
def disable(as_json: AsJson = False) -> None:
    """Remove the catalogue; tables and history stay as they are.

    Example: backfill iceberg disable
    """
    with operating() as at:
        at.store.iceberg.disable()
    if as_json:
        print_json({"catalogue": None, "names": []})
        return
    say("there is no Iceberg catalogue; `backfill iceberg enable` makes one")


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List all names, and the metadata file that each stands for now.

    Example: backfill iceberg list --json
    """
    with looking() as at:
        run = at.run(PROD)
        name = run.store.iceberg.catalogue()
        if name is None and not as_json:
            say("there is no Iceberg catalogue; `backfill iceberg enable` makes one")
            return
        _tell(name, run.store.iceberg.names(), as_json=as_json)


def _tell(catalogue: str | None, names: tuple[Named, ...], *, as_json: bool) -> None:
    if as_json:
        print_json({"catalogue": catalogue, "names": [each._asdict() for each in names]})
        return
    for each in names:
        say(f"{catalogue}.{each.name}: {each.location}")
    say(f"{counted(len(names), 'name')} in catalogue '{catalogue}'")
