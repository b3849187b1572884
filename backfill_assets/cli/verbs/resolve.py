"""`backfill resolve`: name the tables and versions of models, all at one moment."""

from __future__ import annotations

from typing import Annotated

import typer

from backfill_assets.cli.held import say_unheld
from backfill_assets.cli.options import AsJson, Env, ForConsumer  # noqa: TC001 - typer reads them
from backfill_assets.cli.output import print_json, say
from backfill_assets.cli.project import store_looked_at
from backfill_assets.reading import published_to
from backfill_assets.settings import read_settings


def resolve(
    models: Annotated[list[str], typer.Argument(help="Such as marketing.campaign_performance.")],
    env: Env = "prod",
    consumer: ForConsumer = None,
    as_json: AsJson = False,
) -> None:
    """Say where models can be read: paths and versions as an environment reads them at one moment.

    All models of one call are resolved at the same moment. Read a table at the version that is named.

    Example: backfill resolve marketing.campaign_performance marketing.roi_analysis --json
    """
    settings = read_settings()
    with store_looked_at(settings) as store:
        say_unheld(store, consumer)
        environment = published_to(store, env, consumer, settings)
    layers = {name: environment.resolve(name).layers for name in models}
    if as_json:
        rows = {name: [part._asdict() for part in parts] for name, parts in layers.items()}
        print_json({"environment": environment.env, "number": environment.number, "models": rows})
        return
    for name, parts in layers.items():
        for part in parts:
            where = "" if part.where == "TRUE" else f" where {part.where}"
            say(f"{name}: {part.path} at version {part.delta_version}{where}")
