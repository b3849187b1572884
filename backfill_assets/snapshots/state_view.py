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
    """Consecutive ready cells that share one batch and the same stamps.

    Attributes:
        interval: the cells.
        built_at: the counter when the batch pinned its inputs.
        changed_at: when their content last changed. Of a workspace's own cells: against what the
            environment publishes now.
        batch_id: the batch that built them.
        own: whether the environment's own table holds them; False for cells that it reads through
            another environment's pointer or from a table under its own.
        unread: of a workspace's own cells: when their content last changed for cells that the
            environment has built: what differs from the published content, they have never read.
            None where nothing is told apart.
    """

    interval: Interval
    built_at: int
    changed_at: ChangedAt
    batch_id: str
    own: bool = True
    unread: ChangedAt | None = None


@dataclass(frozen=True)
class ModelState:
    """What is ready of one model at its environment's pin."""

    pointer: Pointer
    runs: tuple[ReadyRun, ...] = ()

    @cached_property
    def ready(self) -> IntervalSet:
        """Every interval that is ready at the pin."""
        return IntervalSet.of(run.interval for run in self.runs)

    @cached_property
    def own(self) -> IntervalSet:
        """The ready intervals that the pointer's own table holds."""
        return IntervalSet.of(run.interval for run in self.runs if run.own)


@dataclass(frozen=True)
class StateView:
    """The state of one environment at one instant, as plain values.

    Attributes:
        environment: whose.
        models: what is ready, by model.
        claimed: cells that live batches hold, by model.
        owed: ready cells that were declared wrong and not rebuilt yet, by model.
        counter: the number that was drawn last: nothing in here is later.
    """

    environment: Environment
    models: Mapping[str, ModelState] = field(default_factory=dict[str, ModelState])
    claimed: Mapping[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])
    owed: Mapping[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])
    counter: int = 0

    def ready(self, model: str) -> IntervalSet:
        """The ready intervals of a model; empty for one that has no pointer yet."""
        state = self.models.get(model)
        return IntervalSet.empty() if state is None else state.ready
