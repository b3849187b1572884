"""What is computed by both: three models over made-up ad events, and the edits of their history.

    performance   by day, campaign and channel, from the events
    trends        by month and campaign, from performance
    return        by campaign, over all time, from performance

The queries and columns stand here alone; `catalog` declares them for us, `project` for SQLMesh.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

SOURCE = "raw.ad_events"
PERFORMANCE, TRENDS, ROI = MODELS = (
    "mart.campaign_performance",
    "mart.campaign_trends_monthly",
    "mart.roi_analysis",
)
LAST_DAY, LAST_MONTH_ENDS = date(2025, 6, 23), date(2025, 5, 31)
RESTATED = (date(2025, 5, 1), date(2025, 5, 30))
FEWEST_DAYS = 54
"""So many reach from the first restated day to the last day."""
BATCH_DAYS, BATCH_MONTHS = 30, 6

SOURCE_COLUMNS = (
    ("event_id", "bigint"),
    ("event_date", "date"),
    ("event_ts", "timestamp"),
    ("campaign_id", "int"),
    ("channel", "string"),
    ("event_type", "string"),
    ("cost", "double"),
    ("revenue", "double"),
)
_COUNTED = ("impressions", "clicks", "conversions")
_SUMMED = ("cost", "revenue")
_PROFIT = ("profit", "double", "SUM(revenue) - SUM(cost)")
_LATER = ("double_clicks", "bigint", "SUM(CASE WHEN event_type = 'click' THEN 2 ELSE 0 END)")

NO_EDIT, COLUMN, FILTER, LATER_COLUMN = EDITS = ("none", "column", "filter", "later-column")
"""The edits of performance, one after the other: each has those before it."""


@dataclass(frozen=True, slots=True)
class Size:
    """How many events there are, and over how many days up to the last one."""

    events: int
    days: int

    @property
    def first_day(self) -> date:
        """The first day with events."""
        return LAST_DAY - timedelta(days=self.days - 1)

    @property
    def first_month(self) -> date:
        """The first month that has all of its days."""
        first = self.first_day
        return (
            first if first.day == 1 else (first.replace(day=1) + timedelta(days=31)).replace(day=1)
        )

    def __str__(self) -> str:
        return f"{self.events:,} events over {self.days:,} days"


@dataclass(frozen=True, slots=True)
class Query:
    """A model's query, and its columns with their types."""

    sql: str
    columns: tuple[tuple[str, str], ...]


def performance(edit: str, window: str) -> Query:
    """Give performance after an edit.

    Args:
        edit: one of EDITS.
        window: the condition that cuts the events, in words of who runs it.
    """
    done = EDITS.index(edit)
    added = (_PROFIT,) * (done >= EDITS.index(COLUMN)) + (_LATER,) * (edit == LATER_COLUMN)
    kept = " AND campaign_id <> 0" * (done >= EDITS.index(FILTER))
    grain = (("event_date", "date"), ("campaign_id", "int"), ("channel", "string"))
    summed = (
        *((name, "bigint", f"SUM(IF(event_type = '{name[:-1]}', 1, 0))") for name in _COUNTED),
        *((name, "double", f"SUM({name})") for name in _SUMMED),
        *added,
    )
    return _grouped(
        SOURCE, tuple((*column, column[0]) for column in grain), summed, f"{window}{kept}"
    )


def trends(window: str) -> Query:
    """Give the months of performance; `window` cuts its days."""
    month = ("month_start", "date", "CAST(DATE_TRUNC('MONTH', event_date) AS DATE)")
    summed = (
        *((name, "bigint", f"SUM({name})") for name in _COUNTED),
        *((name, "double", f"SUM({name})") for name in _SUMMED),
    )
    return _grouped(PERFORMANCE, (month, _CAMPAIGN), summed, window)


def roi() -> Query:
    """Give the return on investment over all time."""
    ratio = ("roi", "double", "(SUM(revenue) - SUM(cost)) / NULLIF(SUM(cost), 0)")
    summed = (*((name, "double", f"SUM({name})") for name in _SUMMED), ratio)
    return _grouped(PERFORMANCE, (_CAMPAIGN,), summed, "TRUE")


_CAMPAIGN = ("campaign_id", "int", "campaign_id")
_Columns = tuple[tuple[str, str, str], ...]


def _grouped(table: str, grain: _Columns, summed: _Columns, condition: str) -> Query:
    columns = (*grain, *summed)
    listed = ",\n  ".join(f"{what} AS {name}" for name, _, what in columns)
    keys = ", ".join(what for _, _, what in grain)
    return Query(
        f"SELECT\n  {listed}\nFROM {table}\nWHERE {condition}\nGROUP BY {keys}",
        tuple((name, dtype) for name, dtype, _ in columns),
    )
