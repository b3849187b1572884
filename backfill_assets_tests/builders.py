"""Small valid declarations, records and worlds, of which a test names only what it is about."""

# ruff: noqa: ANN401, S608 - the SQL is the tests' own, and any field may be given

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals import Cadence, Daily, Interval, IntervalSet, Unit, Whole
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.column import Column
from backfill_assets.models.content import ChangedAt
from backfill_assets.models.graph import Graph, build_graph
from backfill_assets.models.kind import Full, IncrementalByTimeRange
from backfill_assets.models.model import Model
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Upstream
from backfill_assets.snapshots.environment import PROD, Environment, Pointer
from backfill_assets.snapshots.state_view import ModelState, ReadyRun, StateView

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FIRST = datetime(2024, 1, 1, tzinfo=UTC)  # a Monday
DAY = timedelta(days=1)

EVENTS = "web.events"
COLUMNS = (Column("ds", "date"), Column("id", "bigint"), Column("cost", "decimal(18,2)"))


def day(number: int, cells: int = 1) -> Interval:
    """That many days of January 2024, from the first one on: `day(1)` is the 1st."""
    start = FIRST + (number - 1) * DAY
    return Interval(start, start + cells * DAY)


def days(*numbers: int) -> IntervalSet:
    """Several days of January 2024 as one set."""
    return IntervalSet.of(day(number) for number in numbers)


def columns_on(cadence: Cadence | None) -> tuple[Column, ...]:
    """`ds`, `id` and `cost`: cells finer than a day need instants."""
    if cadence is None or not cadence.unit.is_subday:
        return COLUMNS
    return Column("ds", "timestamp"), *COLUMNS[1:]


def a_source(name: str = EVENTS, **declared: Any) -> Source:
    """A daily source of events, cut by `ds`."""
    given: dict[str, Any] = {
        "name": name,
        "path": name.replace(".", "/"),
        "cadence": Daily(start="2024-01-01"),
        "columns": columns_on(declared.get("cadence")),
        "times": TimeColumns(event="ds"),
        "owner": "team:web",
    }
    return Source(**{**given, **declared})


def a_model(name: str = "web.visits", **declared: Any) -> Model:
    """A daily SQL model over its upstreams (a source of events, unless given)."""
    upstreams = declared.setdefault("upstreams", [EVENTS])
    if "sql" in declared:
        declared["query"] = SqlQuery(declared.pop("sql"))
    cadence: Cadence = declared.get("cadence", Daily(start="2024-01-01"))
    given: dict[str, Any] = {
        "name": name,
        "query": declared.get("query") or SqlQuery(a_query(upstreams, cadence)),
        "kind": Full() if cadence.unit is Unit.WHOLE else IncrementalByTimeRange("ds"),
        "cadence": cadence,
        "grain": "one row per day and id",
        "unique_key": ["ds", "id"],
        "columns": columns_on(cadence),
        "owner": "team:web",
    }
    return Model(**{**given, **declared})


def a_query(upstreams: Iterable[Upstream | str], cadence: Cadence) -> str:
    """Read `ds`, `id` and `cost` of every upstream, bounded by the interval.

    `ds` of an upstream may be a date or an instant, so in another zone than UTC its type is left open.
    """
    kind = "ts" if cadence.unit.is_subday else "ds"
    start, end = f":start_{kind}", f":end_{kind}"
    if cadence.tz != "UTC":
        start, end = f"COALESCE({start})", f"COALESCE({end})"
    bounded = f" WHERE ds >= {start} AND ds < {end}"
    bounds = "" if cadence.unit is Unit.WHOLE else bounded
    names = [upstream if isinstance(upstream, str) else upstream.name for upstream in upstreams]
    selects = [f"SELECT ds, id, cost FROM {name}{bounds}" for name in names]
    last = ":end_ts - INTERVAL 1 HOUR" if cadence.unit.is_subday else "DATE_SUB(:end_ds, 1)"
    calendar = f"SELECT EXPLODE(SEQUENCE(:start_{kind}, {last})) AS ds, 1 AS id, 2 AS cost"
    return " UNION ALL ".join(selects) or calendar


def a_whole(name: str, **declared: Any) -> Model:
    """A model that is rebuilt as a whole."""
    return a_model(name, cadence=Whole(), **declared)


def a_graph(*models: Model, sources: Iterable[Source] | None = None) -> Graph:
    """Models over the source of events."""
    return build_graph(models, [a_source()] if sources is None else sources)


def a_pointer(model: str) -> Pointer:
    """Where prod reads a model."""
    return Pointer(PROD, model, "fingerprint", f"{model}__v1", 7)


def stamps(row_set: int, **columns: int) -> ChangedAt:
    """When the row set changed, and the columns where that differs."""
    return ChangedAt(row_set, {**dict.fromkeys(("ds", "id", "cost"), row_set), **columns})


def a_run(
    interval: Interval, built_at: int, changed: ChangedAt | int | None = None, batch: str = ""
) -> ReadyRun:
    """Ready cells; unless given, their content changed when they were built."""
    at = built_at if changed is None else changed
    changed_at = stamps(at) if isinstance(at, int) else at
    return ReadyRun(interval, built_at, changed_at, batch or f"batch-{built_at}")


def a_view(ready: Mapping[str, Iterable[ReadyRun]], **claimed: IntervalSet) -> StateView:
    """What prod holds, by model."""
    models = {name: ModelState(a_pointer(name), tuple(runs)) for name, runs in ready.items()}
    names = {name.replace("__", "."): cells for name, cells in claimed.items()}
    return StateView(Environment(PROD, protected=True), models, CellsByModel(names))
