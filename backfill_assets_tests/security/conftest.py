"""The small world of execution, for tests that write tables with hostile names."""

from __future__ import annotations

from backfill_assets_tests.engine.conftest import beginnings, clock, world

__all__ = ["beginnings", "clock", "world"]
