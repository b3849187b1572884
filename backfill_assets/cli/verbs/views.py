"""`backfill views`: write SQL that gives every published model its name in another engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from backfill_assets.cli.held import say_unheld
from backfill_assets.cli.options import AsJson, Env, ForConsumer  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say, writing
from backfill_assets.cli.project import store_looked_at
from backfill_assets.engine.project.views import published_views
from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import counted
from backfill_assets.settings import Dialect, read_settings
from backfill_assets.warehouse.views.view_file import replace_file, views_sql

_STDOUT = "-"


def views(
    dialect: Annotated[Dialect, typer.Option("--for", help="The engine that executes it.")],
    env: Env = "prod",
    consumer: ForConsumer = None,
    out: Annotated[
        str, typer.Option(metavar="FILE", help="Replace this file; - writes it to stdout.")
    ] = _STDOUT,
    as_json: AsJson = False,
) -> None:
    """Write a file of SQL with a view for each model, at the versions published at one moment.

    After the file is executed, every model is read by its name, all at the same moment: marketing.roi_analysis of prod,
    marketing__dev.roi_analysis of an environment dev. DuckDB takes all views in one transaction and needs no
    extension for local files. Spark gets permanent views over its Delta tables. Trino gets calls that register
    the tables in the session's catalogue, which fail for tables that are registered already, and views.

    BACKFILL_VIEWS names files that every publication writes again.

    Example: backfill views --for duckdb --out views.sql

    Example: backfill views --for spark --consumer "yearly accounts" --out accounts.sql
    """
    with store_looked_at(read_settings()) as store:
        say_unheld(store, consumer)
        reads = env if consumer is None else store.holds.read_by(consumer, env)
        published = published_views(store, reads, env)
    if not published.views:
        raise RequestError(
            found=f"environment '{env}' has published nothing yet",
            do="fill it with `backfill run`, or name another one",
        )
    text = views_sql(dialect, published)
    if out != _STDOUT:
        with writing(Path(out)):
            replace_file(Path(out), text)
    if as_json:
        print_json(
            {
                "path": None if out == _STDOUT else out,
                "sql": text if out == _STDOUT else None,
                "environment": env,
                "number": published.number,
                "models": [view.model.name for view in published.views],
            }
        )
    elif out == _STDOUT:
        typer.echo(text, nl=False)
    else:
        say(f"{out}: {counted(len(published.views), 'view')} of environment {env}")
