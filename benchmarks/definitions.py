"""The benchmark's catalog as Dagster loads it."""

from backfill_assets import build_definitions
from benchmarks.catalog import MODELS, SOURCES

defs = build_definitions(models=MODELS, sources=SOURCES)
"""Campaign performance alone, in the batches that the benchmark asks for."""
