"""`make spark-server` and `make spark-server-stop`: a Spark Connect server for this machine alone."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from backfill_assets.cli.app import call
from backfill_assets.cli.output import say
from backfill_assets.settings import Settings, read_settings
from backfill_assets.warehouse.spark.connect import DEFAULT_PORT
from backfill_assets.warehouse.spark.connect_server import ConnectServer
from backfill_assets.warehouse.spark.session import spark_settings

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
Port = Annotated[int, typer.Option(min=1024, max=65535, help="Port on 127.0.0.1.")]


@app.command()
def start(port: Port = DEFAULT_PORT) -> None:
    """Start a server with our jars and settings, unless one of ours runs; say how to use it."""
    settings = read_settings()
    server = _server(settings, port)
    running = server.process()
    pid = server.start(spark_settings(settings), os.environ)
    say(f"Spark Connect {'runs already' if running else 'runs'} (process {pid}, log {server.log})")
    say(f"Next: export SPARK_REMOTE={server.url}")


@app.command()
def stop(port: Port = DEFAULT_PORT) -> None:
    """Stop the server; batches that compute on it fail, and the next run does them again."""
    stopped = _server(read_settings(), port).stop()
    say(
        "Spark Connect is stopped"
        if stopped
        else "No Spark Connect server of this project is running"
    )


def _server(settings: Settings, port: int) -> ConnectServer:
    return ConnectServer((settings.cache / "spark-server").resolve(), port)


def main() -> None:
    """Run it for the process."""
    sys.exit(call(app, sys.argv[1:], "spark-server"))


if __name__ == "__main__":
    main()
