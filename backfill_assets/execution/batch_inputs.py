"""The tables of a batch: what it reads at its pins, and what it writes as it stands before it."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from backfill_assets.execution.requests import input_cells
from backfill_assets.warehouse.inputs import Input
from backfill_assets.warehouse.tables import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.execution.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.batch import OpenBatch
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.ready import InputPin


def batch_inputs(run: RunContext, model: Model, opened: OpenBatch) -> dict[str, Input]:
    """Give each upstream by name, at the pins that the state resolved, the upper layer first."""
    cells = {**input_cells(run, model, opened.request.interval), **opened.request.reads}
    return {
        upstream: Input(
            declared=run.graph.node(upstream),
            table=table_of(tuple(pins)),
            cells=cells[upstream],
        )
        for upstream, pins in groupby(opened.inputs, key=lambda pin: pin.upstream)
    }


def table_of(pins: Sequence[InputPin]) -> Table:
    """Read the pins of one upstream as one table, the first over the others."""
    top, *under = (Table(pin.path, pin.delta_version, getattr(pin, "cells", None)) for pin in pins)
    return Table(top.path, top.delta_version, top.cells, tuple(under))


def target_table(run: RunContext, model: Model, pointer: Pointer) -> Table:
    """Give what a batch writes to as it stands now: its own table, over those under it.

    Cells that the own table does not hold yet are those of the tables under it, also where they
    must be built anew: rows that a delete policy keeps, and keys that move, are found there.
    """
    own = Table(run.store.version_path(pointer.version), run.store.known_head(pointer.version))
    if not pointer.under:
        return own
    state = run.view().models[model.name]
    under = tuple(
        Table(run.store.version_path(layer.version), layer.delta_version) for layer in pointer.under
    )
    return Table(own.path, own.delta_version, state.own, under)
