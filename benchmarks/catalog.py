"""The catalog of the benchmark: campaign performance in batches of another size.

`BENCHMARK_BATCH_DAYS` says how many days a batch has, `BENCHMARK_AT_ONCE` how many batches run side
by side; without them the model is as it is declared.
"""

from __future__ import annotations

import os
from dataclasses import replace

from backfill_assets.pipelines.marketing.models import campaign_performance
from backfill_assets.pipelines.marketing.sources import ad_events

_ASKED = os.environ  # noqa: TID251 - a catalog takes no arguments
_SIZES = {
    field: int(_ASKED[name])
    for field, name in (
        ("batch_size", "BENCHMARK_BATCH_DAYS"),
        ("batch_concurrency", "BENCHMARK_AT_ONCE"),
    )
    if name in _ASKED
}

MODELS = (replace(campaign_performance, **_SIZES),)
SOURCES = (ad_events,)
