"""`backfill metrics`: missing, stale, waiting and failed work, in the text format that Prometheus reads."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from backfill_assets.cli.operating import looking
from backfill_assets.cli.options import AsJson, Env, Select, refuse_together
from backfill_assets.cli.output import err, print_json, say
from backfill_assets.engine.fill.measures import measures
from backfill_assets.errors import RequestError
from backfill_assets.planning.plan.selecting import selected
from backfill_assets.planning.plan.written_options import chosen
from backfill_assets.state.database import StateBusyError, StateUnavailableError
from backfill_assets.warehouse.files.tables import TablesNotListedError, TablesWithoutStateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.engine.fill.measures import Measures

_CELLS = {
    "required": "Cells that must hold audited data.",
    "ready": "Cells that hold audited data, stale ones included.",
    "missing": "Cells that must hold audited data and do not.",
    "stale": "Ready cells that were built before their inputs changed.",
    "owed": "Ready cells that were declared wrong and are not rebuilt yet.",
    "claimed": "Cells that live batches hold.",
}
_INSTANTS = {
    "oldest_gap": "Start of the first missing cell, in seconds since 1970 UTC; absent if no cell is missing.",
    "last_failure": "Last failure after which cells still need work, in seconds since 1970 UTC; absent if there is no failure.",
}
_BATCHES = {
    "batches_in_flight": "Batches that hold a slot, of all environments.",
    "batches_waiting": "Batches that wait for a slot, of all environments.",
    "queue_wait_seconds": "Seconds for which the longest-waiting batch has waited for a slot; 0 if no batch waits.",
}
_UP = "1 where the state database can be read, else 0."
_DOWN = (StateBusyError, StateUnavailableError, TablesWithoutStateError, TablesNotListedError)


def metrics(
    select: Select = None,
    env: Env = "prod",
    serve: Annotated[
        str,
        typer.Option(
            metavar="[HOST:]PORT",
            help="Answer scrapes there until interrupted; this machine alone unless a host is given.",
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Write the numbers for monitoring, in the text format that Prometheus reads.

    For each model: required, ready, missing, stale, owed and claimed cells, the start of the oldest gap, and the last failure
    after which cells still need work; for all batches: how many are in flight, how many wait for a slot, and since when.
    Only the recorded state is read: no source is looked at, and neither Spark nor Dagster is started.

    Exit code: 0, even if cells are missing; `backfill status --check` ends with 1 in that case.

    Example: backfill metrics

    Example: backfill metrics --serve 9464
    """
    refuse_together(serve=serve, json=as_json)
    if serve:
        _serve(*_address(serve), env, select)
        return
    if as_json:
        print_json({"environment": env, **asdict(_measured(env, select))})
        return
    registry = CollectorRegistry()
    registry.register(_Environment(env, select))
    sys.stdout.write(generate_latest(registry).decode())


def _measured(env: str, select: list[str] | None) -> Measures:
    with looking() as at:
        run = at.run(env)
        return measures(run, selected(run.graph, chosen(select)))


class _Environment(Collector):
    """An environment as Prometheus sees it: measured anew at each scrape."""

    def __init__(self, env: str, select: list[str] | None) -> None:
        self._env, self._select = env, select

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing, so that registering this collector measures nothing."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Measure; where the state can't be read, report only that."""
        up = GaugeMetricFamily("backfill_state_up", _UP)
        try:
            measured = _measured(self._env, self._select)
        except _DOWN as error:
            say(str(error), to=err)
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield from _families(self._env, measured)


def _families(env: str, measured: Measures) -> Iterator[GaugeMetricFamily]:
    labels = ["environment", "model"]
    for name, text in _CELLS.items():
        cells = GaugeMetricFamily(f"backfill_{name}_cells", text, labels=labels)
        for model in measured.models:
            cells.add_metric([env, model.model], getattr(model, name))
        yield cells
    for name, text in _INSTANTS.items():
        instants = GaugeMetricFamily(f"backfill_{name}_timestamp_seconds", text, labels=labels)
        for model in measured.models:
            at = model.oldest_gap if name == "oldest_gap" else model.failed_at
            if at is not None:
                instants.add_metric([env, model.model], at.timestamp())
        yield instants
    values = (measured.in_flight, measured.waiting, measured.waits)
    for (name, text), value in zip(_BATCHES.items(), values, strict=True):
        batches = GaugeMetricFamily(f"backfill_{name}", text)
        batches.add_metric([], value)
        yield batches


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 2**16:
        raise RequestError(
            found=f"--serve {text}", expected="a port, or HOST:PORT", do="try --serve 9464"
        )
    return host or "127.0.0.1", int(port)


def _serve(host: str, port: int, env: str, select: list[str] | None) -> None:
    """Answer scrapes until this process is interrupted."""
    _measured(env, select)  # a wrong name fails now, not at the first scrape
    registry = CollectorRegistry()
    registry.register(_Environment(env, select))
    try:
        _, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise RequestError(
            found=f"can't listen on {host}:{port}: {error.strerror}", do="try another port"
        ) from error
    say(f"{env}: http://{host}:{port}/metrics answers until it is interrupted", to=err)
    thread.join()
