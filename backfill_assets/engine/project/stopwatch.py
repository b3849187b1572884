"""Measure the steps of a batch."""

from __future__ import annotations

import time

from backfill_assets.engine.project.events import BatchSeconds


class Stopwatch:
    """Seconds between laps, by the name of the step that ended with the lap."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._laps: dict[str, float] = {}

    def lap(self, step: str) -> None:
        """End a step; one that is lapped twice is added up."""
        now = time.monotonic()
        self._laps[step] = self._laps.get(step, 0.0) + now - self._last
        self._last = now

    def timing(self) -> BatchSeconds:
        """Give all steps."""
        return BatchSeconds(**self._laps)
