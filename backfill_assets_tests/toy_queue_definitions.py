"""The toy shop of the queue as Dagster loads it."""

from backfill_assets import build_definitions
from backfill_assets_tests.toy_queue import MODELS, SOURCES

defs = build_definitions(models=MODELS, sources=SOURCES)
