"""What a person writes into the files of the models, edit by edit."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backfill_assets_tests.stories.project import Project

_PERFORMANCE = "campaign_performance.sql"
_TRENDS = "campaign_trends_monthly.sql"
_ROI = "roi_analysis.sql"

_AMOUNT = "Annotated[T.DecimalType, 18, {scale}] = pa.Field({bounds})"
_WORTH = _AMOUNT.format(scale=2, bounds="ge=0")

NEW_COLUMNS = ("conversion_value", "assisted_conversions", "view_through_conversions")


def add_conversion_value(project: Project) -> None:
    """S1: performance gets three columns, and return on investment reads one of them."""
    project.edit(
        _PERFORMANCE,
        "    CAST(SUM(cost) AS DECIMAL(18, 4)) AS cost\n",
        "    CAST(SUM(cost) AS DECIMAL(18, 4)) AS cost,\n"
        "    CAST(COALESCE(SUM(conversion_value), 0) AS DECIMAL(18, 2)) AS conversion_value,\n"
        "    COUNT_IF(attribution = 'assisted') AS assisted_conversions,\n"
        "    COUNT_IF(attribution = 'view_through') AS view_through_conversions\n",
    )
    _also_select(project, _PERFORMANCE, " AS cost_per_acquisition", *NEW_COLUMNS)
    _also_declare(
        project,
        'description="cost per conversion; NULL without one"\n    )\n',
        f"conversion_value: {_WORTH}",
        "assisted_conversions: T.LongType = pa.Field(ge=0)",
        "view_through_conversions: T.LongType = pa.Field(ge=0)",
    )
    _also_select(
        project, _ROI, " AS roi", "CAST(conversion_value - cost AS DECIMAL(18, 4)) AS profit"
    )
    _also_declare(
        project,
        'per dollar of it"\n    )\n',
        f"profit: {_AMOUNT.format(scale=4, bounds='')}",
    )


def trends_follow(project: Project) -> None:
    """S1, the variant: the monthly trends show the new column as well."""
    project.edit(
        _TRENDS,
        "    CAST(SUM(cost) AS DECIMAL(18, 4)) AS cost\n",
        "    CAST(SUM(cost) AS DECIMAL(18, 4)) AS cost,\n"
        "    CAST(SUM(conversion_value) AS DECIMAL(18, 2)) AS conversion_value\n",
    )
    _also_select(project, _TRENDS, " AS cost_change", "month.conversion_value")
    _also_declare(
        project,
        'as a share of the month before"\n    )\n',
        f"conversion_value: {_WORTH}",
    )


def conversions_by_reported_day(project: Project) -> None:
    """Before S2: a conversion counts on the day that the network reported it on."""
    (project.package / _PERFORMANCE).write_text(_BY_REPORTED_DAY)
    project.edit(
        "models.py",
        'upstreams=["marketing.ad_events"]',
        'upstreams=[Upstream("marketing.ad_events", lookback=3)]',
    )


def conversions_by_own_day_in_a_wrong_zone(project: Project) -> None:
    """S2 with its bug: the conversion's own time, taken for New York's though it is UTC's."""
    _count_by(project, "reported_at", _WRONG)


def right_the_zone(project: Project) -> None:
    """S2 as it should be: the conversion's own time, as it is."""
    _count_by(project, _WRONG, "event_time")


def only_last_clicks(project: Project) -> None:
    """Another meaning of a conversion: a breaking change that all models follow."""
    project.edit(
        _PERFORMANCE,
        "COUNT_IF(event_type = 'conversion') AS conversions",
        "COUNT_IF(attribution = 'last_click') AS conversions",
    )


def worth_six_dollars(project: Project) -> None:
    """Finance agrees to another worth of an acquisition: only return on investment reads it."""
    project.edit(_ROI, "(5.00 - cost", "(6.00 - cost")


def smaller_batches(project: Project, cells: int) -> None:
    """Let both daily models be built in smaller batches."""
    path = project.package / "models.py"
    path.write_text(path.read_text().replace("batch_size=180", f"batch_size={cells}"))


_WRONG = "TO_UTC_TIMESTAMP(event_time, 'America/New_York')"

_BY_REPORTED_DAY = """\
WITH spent AS (
  SELECT
    event_date AS ds,
    channel,
    campaign_id,
    COUNT_IF(event_type = 'impression') AS impressions,
    COUNT_IF(event_type = 'click') AS clicks,
    CAST(SUM(cost) AS DECIMAL(18, 4)) AS cost
  FROM marketing.ad_events
  WHERE event_date >= :start_ds AND event_date < :end_ds
  GROUP BY event_date, channel, campaign_id
),
gained AS (
  SELECT TO_DATE(reported_at) AS ds, channel, campaign_id, COUNT(*) AS conversions
  FROM marketing.ad_events
  WHERE event_type = 'conversion'
    AND event_date >= DATE_SUB(:start_ds, 3) AND event_date < :end_ds
  GROUP BY 1, 2, 3
),
totals AS (
  SELECT
    ds,
    channel,
    campaign_id,
    COALESCE(impressions, 0) AS impressions,
    COALESCE(clicks, 0) AS clicks,
    COALESCE(conversions, 0) AS conversions,
    COALESCE(cost, 0) AS cost
  FROM spent
  FULL OUTER JOIN gained USING (ds, channel, campaign_id)
)
SELECT
  ds,
  channel,
  campaign_id,
  impressions,
  clicks,
  clicks / NULLIF(impressions, 0) AS ctr,
  CAST(cost / NULLIF(clicks, 0) AS DECIMAL(18, 4)) AS cpc,
  conversions,
  cost,
  CAST(cost / NULLIF(conversions, 0) AS DECIMAL(18, 4)) AS cost_per_acquisition
FROM totals
WHERE ds >= :start_ds AND ds < :end_ds
"""


def _count_by(project: Project, old: str, new: str) -> None:
    project.edit(_PERFORMANCE, f"TO_DATE({old})", f"TO_DATE({new})")


def _also_select(project: Project, file: str, after: str, *columns: str) -> None:
    listed = "".join(f",\n  {column}" for column in columns)
    project.edit(file, f"{after}\n", f"{after}{listed}\n")


def _also_declare(project: Project, after: str, *columns: str) -> None:
    project.edit("schemas.py", after, after + "".join(f"    {column}\n" for column in columns))
