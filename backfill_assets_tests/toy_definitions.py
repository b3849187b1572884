"""The toy shop as Dagster loads it."""

from backfill_assets import build_definitions
from backfill_assets_tests.toy import LANDINGS, MODELS, SOURCES

defs = build_definitions(models=MODELS, sources=SOURCES, landings=LANDINGS)
