"""Choose the canaries of a plan: a few telling cells that are built, audited and compared before the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.interval import Interval, epoch_of
from backfill_assets.intervals.interval_set import IntervalSet
from backfill_assets.intervals.zones import DAY, is_month_start
from backfill_assets.models.cells import cells_read
from backfill_assets.models.cells_by_model import CellsByModel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.intervals.cadence import Cadence
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.planning.plan.plan import ModelPlan, Plan

FEWEST = 10
"""A model with fewer planned cells has no canaries of its own: it is built as soon as it can be."""


def with_canaries(plan: Plan, graph: Graph, rows: Mapping[str, Mapping[Interval, int]]) -> Plan:
    """Name the canaries of each model that a plan builds apart.

    Of each model these are the oldest and the newest planned cell, the one that has the most published rows,
    the last day on which clocks change, and the last day of a month; and whatever planned cells they read.

    Args:
        plan: the plan.
        graph: the models as it would run them.
        rows: by model, how many rows each published cell has.
    """
    built = {planned.model: planned for planned in plan.models if planned.built_apart}
    chosen = CellsByModel()
    for name in reversed(graph.order):
        if name not in built:
            continue
        model = graph.models[name]
        chosen |= {name: _own(model, built[name], rows.get(name, {}))}
        for upstream in model.reads:
            if upstream.name in built:
                upstream_cadence = graph.models[upstream.name].cadence
                read = cells_read(
                    model.cadence, upstream, upstream_cadence, chosen[name], until=plan.until
                )
                chosen |= {upstream.name: read & built[upstream.name].cells}
    models = tuple(replace(planned, canaries=chosen[planned.model]) for planned in plan.models)
    return replace(plan, models=models)


def _own(model: Model, planned: ModelPlan, rows: Mapping[Interval, int]) -> IntervalSet:
    """Give a model's own canaries; of one that is built in order, the first cells alone can be."""
    cells = [*model.cadence.cells(planned.cells)]
    if len(cells) < FEWEST:
        return IntervalSet.empty()
    if model.in_order:
        return IntervalSet.of(cells[:1])
    telling = [
        cells[0],
        cells[-1],
        *sorted(rows.keys() & {*cells}, key=lambda cell: (-rows[cell], cell))[:1],
        *[cell for cell in cells if _has_clock_change(model.cadence, cell)][-1:],
        *[cell for cell in cells if _ends_month(model.cadence, cell)][-1:],
    ]
    return IntervalSet.of(telling)


def _has_clock_change(cadence: Cadence, cell: Interval) -> bool:
    return cadence.unit is Unit.DAY and epoch_of(cell.end) - epoch_of(cell.start) != DAY


def _ends_month(cadence: Cadence, cell: Interval) -> bool:
    return cadence.unit in {Unit.HOUR, Unit.DAY} and is_month_start(cadence.tz, epoch_of(cell.end))
