"""The state that a plan is made from: what an environment runs, and which cells are ready."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.snapshot import Snapshot
    from backfill_assets.snapshots.state_view import ModelState, StateView


@dataclass(frozen=True)
class PlanState:
    """What a plan is made from, beside the loaded graph.

    Attributes:
        view: the environment's state at its pins.
        running: the snapshot that the environment runs, by model; none for a model it never saw.
        built: ready cells of tables that this environment does not read, by version: a development
            environment may have built what is to be promoted here. Only cells that the
            version's own snapshot built.
        taken: versions whose tables other environments alone write: a plan for this one can't build there.
        open_plans: plans that are applied and neither promoted nor abandoned.
        furthest_read: per model, the earliest local date that a declared consumer reads.
        source_heads: per source, the delta_version that was its head a moment ago.
        rows: per model, how many rows each published cell has; read for a plan with canaries alone.
        plan_days: after how many days a plan expires.
    """

    view: StateView
    running: Mapping[str, Snapshot] = field(default_factory=dict[str, "Snapshot"])
    built: Mapping[str, ModelState] = field(default_factory=dict[str, "ModelState"])
    taken: frozenset[str] = frozenset()
    open_plans: tuple[Plan, ...] = ()
    furthest_read: Mapping[str, str] = field(default_factory=dict[str, str])
    source_heads: Mapping[str, int] = field(default_factory=dict[str, int])
    rows: Mapping[str, Mapping[Interval, int]] = field(
        default_factory=dict[str, "Mapping[Interval, int]"]
    )
    plan_days: int = 7
