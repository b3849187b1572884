"""Land the web source: made-up page views, one file per day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.pipelines.landed_table import LandedTable
from backfill_assets.pipelines.web.page_views import DAYS, generate_page_views
from backfill_assets.pipelines.web.sources import FIRST_DAY, raw_events

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ROWS = 200_000
SEED = 7


def landings(*, rows: int = ROWS, seed: int = SEED) -> tuple[LandedTable, ...]:
    """Give the landing of `rows` page views."""

    def by_day(spark: SparkSession) -> DataFrame:
        views = generate_page_views(spark, rows=rows, seed=seed)
        return views.repartition("event_date").sortWithinPartitions("event_date", "event_time")

    return (
        LandedTable(
            source=raw_events,
            label=f"{rows} views of seed {seed} in {DAYS} days from {FIRST_DAY}",
            rows=by_day,
            partition_by=("event_date",),
        ),
    )
