"""A picture of the state for planning: what is ready where, since when, and what has changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from backfill_assets.intervals.interval_set import IntervalSet

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import ChangedAt
    from backfill_assets.snapshots.environment import Environment, Pointer


@dataclass(frozen=True, slots=True)
class ReadyRun:
    """Consecutive ready cells that share one batch and the same stamps."""

    interval: Interval
    built_at: int
    changed_at: ChangedAt
    batch_id: str


@dataclass(frozen=True)
class ModelState:
    """What is ready of one model at its environment's pin."""

    pointer: Pointer
    runs: tuple[ReadyRun, ...] = ()

    @cached_property
    def ready(self) -> IntervalSet:
        """Every interval that is ready at the pin."""
        return IntervalSet.of(run.interval for run in self.runs)


@dataclass(frozen=True)
class StateView:
    """The state of one environment at one instant, as plain values."""

    environment: Environment
    models: Mapping[str, ModelState] = field(default_factory=dict[str, ModelState])
    claimed: Mapping[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])

    def ready(self, model: str) -> IntervalSet:
        """The ready intervals of a model; empty for one that has no pointer yet."""
        state = self.models.get(model)
        return IntervalSet.empty() if state is None else state.ready
