"""The inputs of a batch: every upstream at its pin, restricted to the cells that it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.execution.requests import input_cells
from backfill_assets.warehouse.inputs import Input
from backfill_assets.warehouse.tables import Table

if TYPE_CHECKING:
    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.batch import OpenBatch


def batch_inputs(run: RunContext, model: Model, opened: OpenBatch) -> dict[str, Input]:
    """Give each upstream by name, at the pin that the state resolved."""
    cells = {**input_cells(run, model, opened.request.interval), **opened.request.reads}
    return {
        pin.upstream: Input(
            declared=run.graph.node(pin.upstream),
            table=Table(pin.path, pin.delta_version),
            cells=cells[pin.upstream],
        )
        for pin in opened.inputs
    }
