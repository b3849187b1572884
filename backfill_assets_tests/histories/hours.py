"""Hours and days of a zone whose clocks change: what some histories have beside the rest.

`hours` adds up visits; `local_days` adds up the hours of a day in Berlin, and some before it; `local_weeks` those of
a week; `busy_days` is built as a whole from the visits of all hours that are over. On 2024-03-31 the day has 23 hours.
"""

# ruff: noqa: S608 - the SQL is the tests' own

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from backfill_assets.intervals import Daily, Hourly, Weekly, Whole
from backfill_assets.models.column import Column
from backfill_assets.models.kind import Full, IncrementalByTimeRange
from backfill_assets.models.model import Model
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Upstream

if TYPE_CHECKING:
    from random import Random

    from backfill_assets_tests.histories.declared import Declared

VISITS = "shop.visits"
HOURS, LOCAL_DAYS, LOCAL_WEEKS = "shop.hours", "shop.local_days", "shop.local_weeks"
BUSY_DAYS = "shop.busy_days"
BERLIN = "Europe/Berlin"
FIRST_HOUR_ON = date(2024, 3, 30)

_HOUR = timedelta(hours=1)
_START = str(FIRST_HOUR_ON)
_FIRST_WEEK = "2024-03-25"


def visits() -> Source:
    """Visits, by the hour."""
    return Source(
        name=VISITS,
        path="visits",
        cadence=Hourly(start=_START, tz=BERLIN),
        times=TimeColumns(event="at"),
        columns=(Column("at", "timestamp"), Column("id", "bigint"), Column("amount", "bigint")),
        owner="team:shop",
    )


def midnight_in_berlin(day: date) -> datetime:
    """Give the instant at which a day of Berlin begins."""
    return datetime(day.year, day.month, day.day, tzinfo=ZoneInfo(BERLIN)).astimezone(UTC)


def day_in_berlin(at: datetime) -> date:
    """Give the day of Berlin that an instant lies in."""
    return at.astimezone(ZoneInfo(BERLIN)).date()


def hours_of(day: date) -> list[datetime]:
    """Give the hours of a day in Berlin: 23 or 25 of them where the clocks change."""
    first, end = midnight_in_berlin(day), midnight_in_berlin(day + timedelta(days=1))
    return [first + number * _HOUR for number in range((end - first) // _HOUR)]


def is_over(hour: datetime, now: datetime) -> bool:
    """Whether an hour is over."""
    return hour + _HOUR <= now


def hour_of(now: datetime) -> datetime:
    """Give the hour that an instant lies in."""
    return now.replace(minute=0, second=0, microsecond=0)


def some_hours(day: date, random: Random) -> list[datetime]:
    """Choose hours of a day; at a change of the clocks the first ones, more often than not."""
    hours = hours_of(day)
    among = hours if len(hours) == 24 or random.random() < 0.4 else hours[:5]
    return random.sample(among, 3)


def hours_model(name: str, declared: Declared) -> Model:
    """Add up the visits of each hour."""
    sql = (
        f"SELECT DATE_TRUNC('hour', at) AS hour, CAST(SUM(amount) * {declared.factor} AS BIGINT) AS total"
        f" FROM {VISITS} WHERE at >= :start_ts AND at < :end_ts GROUP BY 1"
    )
    columns = (Column("hour", "timestamp"), Column("total", "bigint"))
    cadence = Hourly(start=_START, tz=BERLIN)
    return _model(name, declared, sql, columns, cadence=cadence, upstreams=[VISITS])


def local_days_model(name: str, declared: Declared) -> Model:
    """Add up the hours of each day, and some before it."""
    back = declared.lookback
    day, day_later = _day("hour"), _day(f"hour + INTERVAL {back} HOURS")
    reach = f"FROM {HOURS} WHERE hour >= :start_ts - INTERVAL {back} HOURS AND hour < :end_ts"
    sql = (
        f"WITH reaching AS (SELECT {day} AS ds, total {reach}"
        f" UNION ALL SELECT {day_later} AS ds, total {reach} AND {day_later} > {day})"
        f" SELECT ds, CAST(SUM(total) * {declared.factor} AS BIGINT) AS total FROM reaching"
        " WHERE ds >= :start_ds AND ds < :end_ds GROUP BY ds"
    )
    columns = (Column("ds", "date"), Column("total", "bigint"))
    reads = [Upstream(HOURS, lookback=back)]
    cadence = Daily(start=_START, tz=BERLIN)
    return _model(name, declared, sql, columns, cadence=cadence, upstreams=reads)


def local_weeks_model(name: str, declared: Declared) -> Model:
    """Add up the hours of each week."""
    sql = (
        f"SELECT CAST(DATE_TRUNC('week', {_day('hour')}) AS DATE) AS monday,"
        f" CAST(SUM(total) * {declared.factor} AS BIGINT) AS total"
        f" FROM {HOURS} WHERE hour >= :start_ts AND hour < :end_ts GROUP BY 1"
    )
    columns = (Column("monday", "date"), Column("total", "bigint"))
    cadence = Weekly(start=_FIRST_WEEK, tz=BERLIN)
    return _model(name, declared, sql, columns, cadence=cadence, upstreams=[HOURS])


def busy_days_model(name: str, declared: Declared) -> Model:
    """Add up the visits of each day, of all days at once."""
    total = f"CAST(SUM(amount) * {declared.factor} AS BIGINT) AS total"
    sql = f"SELECT {_day('at')} AS ds, {total} FROM {VISITS} GROUP BY 1"
    columns = (Column("ds", "date"), Column("total", "bigint"))
    whole: dict[str, Any] = {"cadence": Whole(), "kind": Full(), "batch_size": None}
    return _model(name, declared, sql, columns, upstreams=[VISITS], **whole)


def _day(hour: str) -> str:
    return f"TO_DATE(FROM_UTC_TIMESTAMP({hour}, '{BERLIN}'))"


def _model(
    name: str,
    declared: Declared,
    sql: str,
    columns: tuple[Column, ...],
    **more: Any,  # noqa: ANN401
) -> Model:
    given: dict[str, Any] = {
        "kind": IncrementalByTimeRange(columns[0].name),
        "batch_size": declared.batch_size,
    }
    return Model(
        name=name,
        query=SqlQuery(sql),
        columns=columns,
        unique_key=[columns[0].name],
        late_window=declared.late_window,
        description=declared.note,
        grain="one row per cell",
        owner="team:shop",
        **{**given, **more},
    )
