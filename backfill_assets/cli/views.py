"""`backfill views`: write SQL that names what an environment publishes."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated

import typer

from backfill_assets.cli.options import AsJson, Env  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import counted, print_json, say
from backfill_assets.cli.project import open_store
from backfill_assets.engine.project.view_files import views_text, write_whole
from backfill_assets.settings import read_settings
from backfill_assets.warehouse.files.view_sql import Dialect  # noqa: TC001


def views(
    dialect: Annotated[Dialect, typer.Option("--for", help="The engine that executes the file.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Replaced at once; without it, stdout.", dir_okay=False),
    ] = None,
    env: Env = "prod",
    as_json: AsJson = False,
) -> None:
    """Write a file of SQL with a view for each model, at the versions published at one moment.

    DuckDB reads the Parquet files and needs no extension; Spark and Trino read the Delta tables. In another
    environment than prod a view's schema is named <subject>__<environment>. With BACKFILL_VIEWS, such as
    duckdb:/srv/views.sql, every publication of prod writes the file anew.

    Example: backfill views --for duckdb --out views.sql && duckdb -init views.sql
    """
    with open_store(read_settings()) as store:
        text, models = views_text(store, env, dialect)
    if out is not None:
        write_whole(out, text)
    if as_json:
        print_json(
            {"environment": env, "for": dialect.value, "file": out and str(out), "models": models}
        )
    elif out is None:
        typer.echo(text, nl=False)
    else:
        say(f"{out}: {counted(len(models), 'view')} of '{env}' for {dialect.value}")
