"""The toy shop with late windows and small batches: what the queue works on in tests."""

from __future__ import annotations

from dataclasses import replace

from backfill_assets_tests import toy

WINDOW = 7
sales = replace(toy.sales, batch_size=2, late_window=WINDOW)
sales_of_three_days = replace(toy.sales_of_three_days, batch_size=3, late_window=WINDOW)
returns = replace(toy.returns, batch_size=2)
clicks = replace(toy.clicks, batch_size=6)

MODELS = (sales, sales_of_three_days, returns, toy.returns_daily, clicks, toy.clicks_daily)
SOURCES = (toy.raw_sales, toy.raw_returns, toy.raw_clicks)
