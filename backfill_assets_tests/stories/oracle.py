"""What the models must hold, worked out row by row in Python from the landed events alone.

Nothing of the product is used: neither its SQL nor Spark. Decimals are rounded as the declarations
say, half up.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from deltalake import DeltaTable

from backfill_assets_tests.stories.project import EVENTS, PERFORMANCE, ROI, TRENDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from backfill_assets_tests.stories.project import Project

Row = dict[str, Any]
_EXACT = Context(prec=60, rounding=ROUND_HALF_UP)
_NEW_YORK = ZoneInfo("America/New_York")


def by_event_day(event: Row) -> date:
    """A conversion counts on the day that it happened on."""
    return event["event_date"]


def by_reported_day(event: Row) -> date:
    """A conversion counts on the day that it was reported on."""
    return event["reported_at"].date()


def by_own_day_in_a_wrong_zone(event: Row) -> date:
    """A conversion counts on the day that it would be, were its UTC time New York's."""
    return event["event_time"].replace(tzinfo=_NEW_YORK).astimezone(UTC).date()


def landed_events(project: Project, *, version: int | None = None) -> list[Row]:
    """Read the source."""
    table = DeltaTable(str(project.data / EVENTS), version=version)
    return table.to_pyarrow_table().to_pylist()


def history(
    project: Project,
    *,
    last: date,
    counted_on: Callable[[Row], date] = by_event_day,
    valued: bool = False,
    trends_valued: bool = False,
    version: int | None = None,
) -> dict[str, list[Row]]:
    """Work out all three models from what is landed now, or was at a version of the source."""
    events = landed_events(project, version=version)
    days = performance(events, last=last, counted_on=counted_on, valued=valued)
    return {
        PERFORMANCE: days,
        ROI: roi(days, valued=valued),
        TRENDS: trends(days, last=last, valued=trends_valued),
    }


@dataclass
class _Total:
    impressions: int = 0
    clicks: int = 0
    conversions: int = 0
    cost: Decimal = Decimal(0)
    conversion_value: Decimal = Decimal(0)
    assisted_conversions: int = 0
    view_through_conversions: int = 0


def performance(
    events: Iterable[Row],
    *,
    last: date,
    counted_on: Callable[[Row], date] = by_event_day,
    valued: bool = False,
) -> list[Row]:
    """Work out `campaign_performance`.

    Args:
        events: the landed ones.
        last: the last day of the model.
        counted_on: on which day a conversion counts.
        valued: with the columns of S1.
    """
    totals: defaultdict[tuple[date, str, int], _Total] = defaultdict(_Total)
    for event in events:
        who = (event["channel"], event["campaign_id"])
        if event["event_date"] <= last:
            _spend(totals[event["event_date"], *who], event)
        if event["event_type"] == "conversion" and counted_on(event) <= last:
            _gain(totals[counted_on(event), *who], event)
    return [_performance(key, total, valued=valued) for key, total in totals.items()]


def roi(performance_rows: Iterable[Row], *, valued: bool = False, worth: str = "5.00") -> list[Row]:
    """Work out `roi_analysis`; an acquisition is worth so many dollars."""
    kept = ("ds", "channel", "campaign_id", "conversions", "cost", "cost_per_acquisition")
    return [
        {name: row[name] for name in kept}
        | {"roi": _roi(row["cost_per_acquisition"], Decimal(worth))}
        | ({"profit": _rounded(row["conversion_value"] - row["cost"], 4)} if valued else {})
        for row in performance_rows
    ]


def trends(performance_rows: Iterable[Row], *, last: date, valued: bool = False) -> list[Row]:
    """Work out `campaign_trends_monthly`, whole months up to the day `last`."""
    summed = ("impressions", "clicks", "conversions", "cost", "conversion_value")
    months: defaultdict[tuple[date, int], Row] = defaultdict(lambda: dict.fromkeys(summed, 0))
    for row in performance_rows:
        month = months[row["ds"].replace(day=1), row["campaign_id"]]
        for name in summed:
            month[name] += row.get(name, 0)
    whole = (last + timedelta(days=1)).replace(day=1)
    return [
        _trend(month, campaign, months, valued=valued)
        for month, campaign in months
        if month < whole
    ]


def _spend(total: _Total, event: Row) -> None:
    total.impressions += event["event_type"] == "impression"
    total.clicks += event["event_type"] == "click"
    total.cost += event["cost"]


def _gain(total: _Total, event: Row) -> None:
    total.conversions += 1
    total.conversion_value += event["conversion_value"]
    total.assisted_conversions += event["attribution"] == "assisted"
    total.view_through_conversions += event["attribution"] == "view_through"


def _performance(key: tuple[date, str, int], total: _Total, *, valued: bool) -> Row:
    row = {
        "ds": key[0],
        "channel": key[1],
        "campaign_id": key[2],
        "impressions": total.impressions,
        "clicks": total.clicks,
        "ctr": total.clicks / total.impressions if total.impressions else None,
        "cpc": _share(total.cost, total.clicks, 4),
        "conversions": total.conversions,
        "cost": _rounded(total.cost, 4),
        "cost_per_acquisition": _share(total.cost, total.conversions, 4),
    }
    if valued:
        row["conversion_value"] = _rounded(total.conversion_value, 2)
        row["assisted_conversions"] = total.assisted_conversions
        row["view_through_conversions"] = total.view_through_conversions
    return row


def _roi(cost_per_acquisition: Decimal | None, worth: Decimal) -> Decimal | None:
    if cost_per_acquisition is None:
        return None
    return _share(worth - cost_per_acquisition, cost_per_acquisition, 6)


def _trend(
    month: date, campaign: int, months: Mapping[tuple[date, int], Row], *, valued: bool
) -> Row:
    now = months[month, campaign]
    before = months.get(((month - timedelta(days=1)).replace(day=1), campaign))
    row = {
        "month_start": month,
        "campaign_id": campaign,
        "impressions": now["impressions"],
        "clicks": now["clicks"],
        "conversions": now["conversions"],
        "cost": now["cost"],
        "previous_conversions": before and before["conversions"],
        "previous_cost": before and before["cost"],
        "cost_change": before and _share(now["cost"] - before["cost"], before["cost"], 6),
    }
    return row | ({"conversion_value": now["conversion_value"]} if valued else {})


def _share(value: Decimal, of: Decimal | int, places: int) -> Decimal | None:
    return _rounded(_EXACT.divide(value, Decimal(of)), places) if of else None


def _rounded(value: Decimal, places: int) -> Decimal:
    return value.quantize(Decimal(1).scaleb(-places), context=_EXACT)
