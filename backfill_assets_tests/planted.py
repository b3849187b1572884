"""One model of the project, with an audit that published data can't pass: CI expects exit code 1."""

from __future__ import annotations

from dataclasses import replace

from backfill_assets.models.audit import row_rule
from backfill_assets.pipelines import catalog

PLANTED_IN = "marketing.campaign_performance"

MODELS = tuple(
    replace(model, audits=(*model.audits, row_rule("planted_failure", "cost < 0")))
    for model in catalog.MODELS
    if model.name == PLANTED_IN
)

SOURCES = catalog.SOURCES
