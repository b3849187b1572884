"""Land the marketing source: made-up ad events, partitioned by the day on which they happened."""

from __future__ import annotations

from functools import partial

from backfill_assets.pipelines.landed_table import LandedTable
from backfill_assets.pipelines.marketing.ad_events import DAYS, generate_events
from backfill_assets.pipelines.marketing.sources import FIRST_DAY, ad_events

SEED = 7


def landings(*, rows: int, seed: int = SEED) -> tuple[LandedTable, ...]:
    """Give the landing of `rows` ad events."""
    return (
        LandedTable(
            source=ad_events,
            label=f"{rows} events of seed {seed} in {DAYS} days from {FIRST_DAY}",
            rows=partial(generate_events, rows=rows, seed=seed),
            partition_by=("event_date",),
        ),
    )
