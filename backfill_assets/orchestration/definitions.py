"""What Dagster loads: this project's models, sources and consumers."""

from backfill_assets.orchestration.building import build_definitions
from backfill_assets.pipelines.catalog import CONSUMERS, MODELS, SOURCES
from backfill_assets.pipelines.landing import LANDINGS

defs = build_definitions(models=MODELS, sources=SOURCES, consumers=CONSUMERS, landings=LANDINGS)
