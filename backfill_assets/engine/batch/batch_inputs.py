"""The tables of a batch: what it reads at its pins, and what it writes as it stands before it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.batch.requests import input_cells
from backfill_assets.planning.plan.request import KeptRows
from backfill_assets.snapshots.ready import pins_by_upstream
from backfill_assets.warehouse.files.layers import table_of, table_read
from backfill_assets.warehouse.files.tables import Table
from backfill_assets.warehouse.log.delta_log import ABSENT
from backfill_assets.warehouse.rows.inputs import Input
from backfill_assets.warehouse.rows.kept_rows import History
from backfill_assets.warehouse.rows.numbers import compares_with_published

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets.snapshots.batch import OpenBatch
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.ready import InputPin


def batch_inputs(run: RunContext, model: Model, opened: OpenBatch) -> dict[str, Input]:
    """Give each upstream by name, at the pins that the state resolved, the upper layer first.

    A pin of something else, such as the table that cells are adopted from, is there for the record.
    """
    cells = {**input_cells(run, model, opened.request.stretches), **opened.request.reads}
    return {
        upstream: Input(
            declared=run.graph.node(upstream),
            table=_pinned(run, upstream, pins),
            cells=cells[upstream],
        )
        for upstream, pins in pins_by_upstream(opened.inputs).items()
        if upstream in cells
    }


def target_table(run: RunContext, model: Model, pointer: Pointer) -> Table:
    """Give what a batch writes to as it stands now: its own table, over those under it.

    Cells that the own table does not hold yet are those of the tables under it, also where they
    must be built anew: rows that a delete policy keeps, and keys that move, are found there.
    """
    head = run.store.versions.known_head(pointer.version)
    if not pointer.under:
        return Table(run.store.versions.version_path(pointer.version), head)
    now = run.store.environments.pointers(run.environment.name)[model.name]
    return replace(table_of(run.store.views.tables(now), run.store.located), delta_version=head)


def history_of(run: RunContext, name: str) -> History | None:
    """Give what is published of a model that keeps rows, for a batch in a plan's workspace; else None."""
    decided, follows = run.kept_rows.get(name), run.environment.follows
    at = None if follows is None else run.store.environments.pointers(follows).get(name)
    if decided is None or at is None:
        return None
    return History(
        table_of(run.store.views.tables(at), run.store.located), carried=decided is KeptRows.CARRY
    )


def published_for_audits(run: RunContext, model: Model) -> Table | None:
    """Give what people read of a model, where one of its audits compares with that.

    For a plan's workspace it is what the environment reads whose history the plan changes. Cells that are cut
    otherwise say nothing of those of the batch: they are not compared.
    """
    if not compares_with_published(model):
        return None
    environment = run.environment
    where = (
        environment.follows
        if environment.is_workspace and environment.follows
        else environment.name
    )
    pointer = run.store.environments.pointers(where).get(model.name)
    if pointer is None or pointer.delta_version == ABSENT:
        return None
    if run.store.snapshots.get(pointer.fingerprint).declared.cadence.grid != model.cadence.grid:
        return None
    return table_read(run.store.views.tables(pointer), run.store.located, pointer.certain)


def published_table(run: RunContext, name: str) -> Table:
    """Give what a run's environment reads of a model now, layers included."""
    pointer = run.store.environments.pointers(run.environment.name)[name]
    return table_read(run.store.views.tables(pointer), run.store.located, pointer.certain)


def _pinned(run: RunContext, upstream: str, pins: Sequence[InputPin]) -> Table:
    """Read an upstream at the pins of a batch.

    Pins of layers name only the cells that the batch reads. An audit that refers to the whole
    upstream finds the other cells as the environment reads them now.
    """
    table = table_of(pins, run.store.located)
    if all(pin.cells is None for pin in pins):
        return table
    rest = published_table(run, upstream)
    return replace(table, under=(*table.under, rest))
