"""A small project by parameters, so that an edit is another value and every definition can be worked out again.

`days` adds up sales; `trailing` adds up several days; `periods` adds up days, weeks or months; `balance` reads
two models; `report` is built as a whole; `running` reads its own day before.
"""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from datetime import date
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals import Daily, Monthly, Unit, Weekly, Whole
from backfill_assets.models.audit import row_rule
from backfill_assets.models.column import Column
from backfill_assets.models.consumer import Consumer, Reading
from backfill_assets.models.graph import Graph, build_graph
from backfill_assets.models.kind import Full, IncrementalByTimeRange
from backfill_assets.models.model import Model
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Reopens, Upstream
from backfill_assets_tests.histories.daily import trailing
from backfill_assets_tests.histories.declared import CRONS, Declared
from backfill_assets_tests.histories.deliveries import (
    ARRIVALS,
    STOCK,
    arrivals_model,
    stock_model,
)
from backfill_assets_tests.histories.functions import PACED, PACES, paced_model, paces_model
from backfill_assets_tests.histories.hours import (
    BUSY_DAYS,
    HOURS,
    LOCAL_DAYS,
    LOCAL_WEEKS,
    busy_days_model,
    hours_model,
    local_days_model,
    local_weeks_model,
)
from backfill_assets_tests.histories.ledger import LEDGER, RANGES, ledger_model
from backfill_assets_tests.histories.receipts import (
    RECEIPTS,
    TAKINGS,
    receipts_model,
    takings_model,
)
from backfill_assets_tests.histories.sales import SALES
from backfill_assets_tests.histories.weights import (
    SMOOTHED,
    WEIGHED,
    smoothed_model,
    weighed_model,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

FIRST_DAY = date(2024, 3, 18)  # a Monday
FIRST_OF_PERIODS = {Unit.DAY: "2024-03-18", Unit.WEEK: "2024-03-18", Unit.MONTH: "2024-03-01"}

READER = "Yearly accounts"
DAYS, TRAILING, PERIODS = "shop.days", "shop.trailing", "shop.periods"
BALANCE, RENAMED = "shop.balance", "shop.balance_renamed"
REPORT, RUNNING = "shop.report", "shop.running"

_OWN = "WHERE ds >= :start_ds AND ds < :end_ds"
_PERIODS = {Unit.DAY: Daily, Unit.WEEK: Weekly, Unit.MONTH: Monthly}


FIRST: Mapping[str, Declared] = {
    DAYS: Declared(),
    TRAILING: Declared(batch_size=5),
    PERIODS: Declared(batch_size=2, late_window=1),
    BALANCE: Declared(batch_size=6, cron=CRONS[1]),
    REPORT: Declared(),
    RUNNING: Declared(batch_size=1, late_window=2),
}
"""The project as it begins."""

WITH_HOURS: Mapping[str, Declared] = {
    **FIRST,
    HOURS: Declared(batch_size=40, late_window=30),
    LOCAL_DAYS: Declared(batch_size=3),
    LOCAL_WEEKS: Declared(batch_size=1, late_window=1),
    BUSY_DAYS: Declared(late_window=1),
}
"""The same with hours beside it."""

WITH_RECEIPTS: Mapping[str, Declared] = {
    **FIRST,
    RECEIPTS: Declared(batch_size=3),
    TAKINGS: Declared(lookback=1),
}
"""The same with receipts instead."""

WITH_DELIVERIES: Mapping[str, Declared] = {
    **FIRST,
    ARRIVALS: Declared(lookback=1),
    STOCK: Declared(late_window=2),
    LEDGER: Declared(late_window=1, ranges=RANGES[1]),
}
"""The same with deliveries and a ledger instead."""

WITH_WEIGHTS: Mapping[str, Declared] = {
    **FIRST,
    WEIGHED: Declared(),
    SMOOTHED: Declared(lookback=1),
    PACED: Declared(lookback=1),
    PACES: Declared(lookback=1, batch_size=5),
}
"""The same with weights and a function instead."""

_made: dict[tuple[str, str, Any], Declared] = {}


def source() -> Source:
    """Sales, by the day."""
    return Source(
        name=SALES,
        path="sales",
        cadence=Daily(start=str(FIRST_DAY)),
        times=TimeColumns(event="ds"),
        columns=(Column("ds", "date"), Column("id", "bigint"), Column("amount", "bigint")),
        owner="team:shop",
    )


_READER = Consumer(
    name=READER,
    kind="dashboard",
    owner="team:finance",
    reads=[Reading(DAYS), Reading(TRAILING), Reading(PERIODS)],
)
"""Who may be held at what is published; what it reads is always declared."""


def graph_of(project: Mapping[str, Declared], sources: Iterable[Source]) -> Graph:
    """Declare the models of a project, and its sources."""
    return _graph(tuple(project.items()), tuple(sources))


def declared_as(model: Model) -> Declared:
    """Tell of a model, as a snapshot holds it, what it computes: no other parameter changes its query."""
    return _made[_computing(model)]


def _computing(model: Model) -> tuple[str, str, Any]:
    """Give what tells how a model's rows come about."""
    query = model.logic.sql if isinstance(model.logic, SqlQuery) else model.logic.shown()
    return model.name, query, model.delete_policy


@cache
def _graph(project: tuple[tuple[str, Declared], ...], sources: tuple[Source, ...]) -> Graph:
    models = [_MODELS[name](name, declared) for name, declared in project]
    for declared, model in zip(dict(project).values(), models, strict=True):
        _made[_computing(model)] = declared
    return build_graph(models, sources, [_READER])


def _model(name: str, declared: Declared, sql: str, **more: Any) -> Model:  # noqa: ANN401
    names = more.pop("names")
    given: dict[str, Any] = {
        "cadence": Daily(start=declared.start, end=declared.end, cron=declared.cron),
        "kind": IncrementalByTimeRange(names[0]),
        "late_window": declared.late_window,
        "batch_size": declared.batch_size,
        "description": declared.note,
    }
    return Model(
        name=name,
        query=SqlQuery(sql),
        columns=tuple(
            Column(one, "bigint" if number else "date") for number, one in enumerate(names)
        ),
        unique_key=[names[0]],
        grain="one row per cell",
        owner="team:shop",
        **{**given, **more},
    )


def _days(name: str, declared: Declared) -> Model:
    count = ", COUNT(*) AS sold" if declared.counts else ""
    sql = (
        f"SELECT ds, CAST(SUM(amount) * {declared.factor} AS BIGINT) AS total{count}"
        f" FROM {SALES} {_OWN} GROUP BY ds"
    )
    audits = [row_rule("not_negative", "total >= 0")]
    if declared.expected:
        audits.append(row_rule("expected", f"total < {declared.expected}", warn=True))
    names = ("ds", "total", "sold") if declared.counts else ("ds", "total")
    return _model(name, declared, sql, names=names, audits=audits, upstreams=[SALES])


def _trailing(name: str, declared: Declared) -> Model:
    column, back = "sold" if declared.counts else "total", declared.lookback
    total = f"CAST(SUM(earlier.{column}) + {declared.plus} AS BIGINT)"
    sql = trailing(total, DAYS, column, back)
    reads = [Upstream(DAYS, lookback=back)]
    return _model(name, declared, sql, names=("ds", "total"), upstreams=reads)


def _periods(name: str, declared: Declared) -> Model:
    unit = declared.unit
    sql = (
        f"SELECT CAST(DATE_TRUNC('{unit.value}', ds) AS DATE) AS first_day,"
        f" CAST(SUM(total) * {declared.factor} AS BIGINT) AS total FROM {DAYS} {_OWN} GROUP BY 1"
    )
    cadence = _PERIODS[unit](start=FIRST_OF_PERIODS[unit], cron=declared.cron)
    names = ("first_day", "total")
    return _model(name, declared, sql, names=names, upstreams=[DAYS], cadence=cadence)


def _balance(name: str, declared: Declared) -> Model:
    sql = (
        f"SELECT days.ds AS ds, CAST(days.total * {declared.factor} - trailing.total AS BIGINT) AS total"
        f" FROM (SELECT ds, total FROM {DAYS} {_OWN}) AS days"
        f" JOIN (SELECT ds, total FROM {TRAILING} {_OWN}) AS trailing ON days.ds = trailing.ds"
    )
    return _model(name, declared, sql, names=("ds", "total"), upstreams=[DAYS, TRAILING])


def _report(name: str, declared: Declared) -> Model:
    sql = f"SELECT first_day, CAST(total + {declared.plus} AS BIGINT) AS total FROM {PERIODS}"
    whole: dict[str, Any] = {
        "cadence": Whole(),
        "kind": Full(),
        "late_window": 0,
        "batch_size": None,
    }
    reads = [Upstream(PERIODS, reopens=Reopens.ALL)]
    return _model(name, declared, sql, names=("first_day", "total"), upstreams=reads, **whole)


def _running(name: str, declared: Declared) -> Model:
    sql = (
        f"SELECT days.ds AS ds, CAST(days.total * {declared.factor} + COALESCE(before.total, 0) AS BIGINT)"
        f" AS total FROM (SELECT ds, total FROM {DAYS} {_OWN}) AS days"
        f" LEFT JOIN (SELECT ds, total FROM {RUNNING} WHERE ds >= DATE_SUB(:start_ds, 1)"
        " AND ds < DATE_SUB(:end_ds, 1)) AS before ON before.ds = DATE_SUB(days.ds, 1)"
    )
    reads = [DAYS, Upstream(RUNNING, lookback=1)]
    return _model(name, declared, sql, names=("ds", "total"), upstreams=reads)


_MODELS = {
    DAYS: _days,
    TRAILING: _trailing,
    PERIODS: _periods,
    BALANCE: _balance,
    RENAMED: _balance,
    REPORT: _report,
    RUNNING: _running,
    HOURS: hours_model,
    LOCAL_DAYS: local_days_model,
    LOCAL_WEEKS: local_weeks_model,
    BUSY_DAYS: busy_days_model,
    RECEIPTS: receipts_model,
    TAKINGS: takings_model,
    ARRIVALS: arrivals_model,
    WEIGHED: weighed_model,
    SMOOTHED: smoothed_model,
    STOCK: partial(stock_model, sold=DAYS),
    PACED: partial(paced_model, days=DAYS),
    PACES: paces_model,
    LEDGER: ledger_model,
}
