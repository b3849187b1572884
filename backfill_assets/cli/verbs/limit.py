"""`backfill limit`: show or change how many batches may be in flight, at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from backfill_assets.cli.named_model import model_named
from backfill_assets.cli.options import LARGEST, AsJson
from backfill_assets.cli.output import Heading, print_json, print_table, say
from backfill_assets.cli.project import load_graph, open_store, store_looked_at, who_asks
from backfill_assets.cli.stored_plans import is_plan_file, kept_plan
from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import counted
from backfill_assets.settings import read_settings
from backfill_assets.snapshots.slots import ALL, model_scope, plan_scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.graph import Graph
    from backfill_assets.settings import Settings
    from backfill_assets.snapshots.slots import InFlightBatch
    from backfill_assets.state.store import Store


def _unclear_limit(of: str | None, batches: int | None, *, default: bool) -> RequestError:
    parts = [of, None if batches is None else str(batches), "--default" if default else None]
    return RequestError(
        found=f"`backfill limit {' '.join(part for part in parts if part)}` can't be understood",
        expected="a plan, a model or `all`, and either a number or --default",
        do="Nothing was changed; `backfill limit` alone shows all limits",
    )


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


# Without this a number below zero would be parsed as an option, with a misleading error.
@app.command(context_settings={"ignore_unknown_options": True})
def limit(
    of: Annotated[
        str | None,
        typer.Argument(
            metavar="PLAN|MODEL|all",
            help="A plan or its file, a model or `all`; without it, list the limits.",
        ),
    ] = None,
    batches: Annotated[
        int | None,
        typer.Argument(metavar="N", max=LARGEST, help="How many batches at once, 1 or more."),
    ] = None,
    default: Annotated[
        bool,
        typer.Option("--default", help="Remove the limit that was set: the default applies again."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show, or set, how many batches may run at once: of a plan, of a model, of all.

    The limit counts over every run, process and machine that shares the state: queue, UI, command line. Running batches continue; the next
    batch that a run opens obeys the new limit. By default the limit of a model is its `batch_concurrency`, that of all is
    BACKFILL_MAX_BATCHES, and a plan has no limit. A run that is at work uses a raised limit as soon as one of its batches has ended.

    Exit code: 0 when the limit is set or shown, 1 when there is no such plan or model, or the number is below 1.

    Example: backfill limit

    Example: backfill limit all 4

    Example: backfill limit p1a2b3c4d5 1

    Example: backfill limit marketing.campaign_performance --default
    """
    settings = read_settings()
    graph = load_graph(settings)
    if of is not None and (batches is None) == default:
        with open_store(settings) as store:
            store.limits.set_limit(_scope(store, graph, of), batches, str(who_asks(settings)))
    elif of is not None or batches is not None or default:
        raise _unclear_limit(of, batches, default=default)
    with store_looked_at(settings) as store:
        rows = list(_rows(store, graph, settings))
    if as_json:
        print_json(rows)
    else:
        _show(rows)


def _scope(store: Store, graph: Graph, name: str) -> str:
    """Distinguish a plan from a model: names of models have two parts.

    Raises:
        RequestError: there is no such model.
        RequestError: it is a source.
        UnknownPlanError: there is no such plan.
        RequestError: several plans' ids begin so.
    """
    if name == ALL:
        return ALL
    if name in graph.models or ("." in name and not is_plan_file(name)):
        return model_scope(model_named(graph, name).name)
    return plan_scope(kept_plan(store, name).plan_id)


def _rows(store: Store, graph: Graph, settings: Settings) -> Iterator[dict[str, Any]]:
    """Give every limit that is set, and those of the batches in flight."""
    limits, at_work = store.limits.by_scope(), store.limits.in_flight()
    scopes = {ALL: settings.max_batches}
    for batch in at_work:
        scopes |= _scopes_of(graph, batch)
    scopes |= {scope: _default(graph, settings, scope) for scope in limits}
    for scope in sorted(scopes, key=lambda scope: (scope != ALL, scope)):
        yield {
            "scope": scope,
            "limit": limits.get(scope, scopes[scope]),
            "set": scope in limits,
            "default": scopes[scope],
            "at_work": [
                batch.batch_id for batch in at_work if scope in {ALL, *_scopes_of(graph, batch)}
            ],
        }


def _scopes_of(graph: Graph, batch: InFlightBatch) -> dict[str, int | None]:
    model = graph.models.get(batch.model)
    scopes: dict[str, int | None] = {
        model_scope(batch.model): model.batch_concurrency if model else None
    }
    return scopes if batch.plan_id is None else {**scopes, plan_scope(batch.plan_id): None}


def _default(graph: Graph, settings: Settings, scope: str) -> int | None:
    if scope == ALL:
        return settings.max_batches
    model = graph.models.get(scope.removeprefix("model:"))
    return model.batch_concurrency if model else None


_HEADINGS = (
    Heading("of"),
    Heading("limit", number=True),
    Heading("at work", number=True),
    Heading("set", spare=1),
)


def _show(rows: list[dict[str, Any]]) -> None:
    print_table(
        _HEADINGS,
        [
            (
                row["scope"].partition(":")[2] or row["scope"],
                str(row["limit"] or "any"),
                str(len(row["at_work"])),
                "by hand" if row["set"] else "default",
            )
            for row in rows
        ],
    )
    work = len(rows[0]["at_work"])
    say(f"{counted(work, 'batch', 'batches')} at work; at most {rows[0]['limit']} altogether.")
