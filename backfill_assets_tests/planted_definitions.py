"""What Dagster loads when CI wants the `audits` job to fail."""

from __future__ import annotations

from backfill_assets.orchestration.building import build_definitions
from backfill_assets_tests.planted import MODELS, SOURCES

defs = build_definitions(models=MODELS, sources=SOURCES)
