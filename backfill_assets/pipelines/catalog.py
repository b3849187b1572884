"""The catalog: every model, source and consumer of this project. Start reading here.

    subject    reads                                      models
    --------------------------------------------------------------------------------------------
    commerce   raw_orders                              -> orders
               raw_items, raw_products, orders         -> fact_order_items
               raw_supply_prices                       -> cost_history
               orders, fact_order_items, cost_history  -> fact_orders -> gross_margin_daily
               gross_margin_daily                      -> revenue_weekly, revenue_monthly
    marketing  ad_events                               -> campaign_performance
               campaign_performance                    -> campaign_trends_monthly, roi_analysis
    web        raw_events                              -> events (hourly) -> sessions (daily)

A subject is a folder: `sources.py` declares its sources, `models.py` its models, `.sql` files their queries,
`schemas.py` their columns, and `consumers.py` who reads them; `landing.py` lands the sample data. To add a
model, declare it in `models.py` of its subject and add it to MODELS there. The model to read first is
`campaign_performance` in `marketing/models.py`, with its `.sql` file.
"""

from __future__ import annotations

from backfill_assets.pipelines.commerce import (
    consumers as commerce_consumers,
    models as commerce,
    sources as commerce_sources,
)
from backfill_assets.pipelines.marketing import (
    consumers as marketing_consumers,
    models as marketing,
    sources as marketing_sources,
)
from backfill_assets.pipelines.web import models as web, sources as web_sources

MODELS = (*commerce.MODELS, *marketing.MODELS, *web.MODELS)

SOURCES = (*commerce_sources.SOURCES, *marketing_sources.SOURCES, *web_sources.SOURCES)

CONSUMERS = (*commerce_consumers.CONSUMERS, *marketing_consumers.CONSUMERS)
