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
_DAYS = int(_ASKED.get("BENCHMARK_BATCH_DAYS") or campaign_performance.batch_size)
_AT_ONCE = int(_ASKED.get("BENCHMARK_AT_ONCE") or campaign_performance.batch_concurrency)

MODELS = (replace(campaign_performance, batch_size=_DAYS, batch_concurrency=_AT_ONCE),)
SOURCES = (ad_events,)
