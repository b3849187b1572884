"""What Dagster loads: this project's models and sources."""

from backfill_assets.orchestration.building import build_definitions
from backfill_assets.pipelines.catalog import MODELS, SOURCES
from backfill_assets.pipelines.landing import LANDINGS

defs = build_definitions(models=MODELS, sources=SOURCES, landings=LANDINGS)
