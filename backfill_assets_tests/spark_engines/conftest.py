"""The small world of execution, on whichever Spark the test run has."""

from __future__ import annotations

from backfill_assets_tests.engine.conftest import beginnings, clock, world

__all__ = ["beginnings", "clock", "world"]
