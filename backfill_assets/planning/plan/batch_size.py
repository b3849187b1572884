"""Decide how many cells of a model go in one batch, for plans, runs and the queue alike.

A declared batch size counts. Where a model declares none, a batch reads about `BYTES_PER_BATCH` of the
recorded bytes of its inputs: of a source, the bytes of its files at the last look; of a model, the
bytes that its batches wrote.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import TYPE_CHECKING

from backfill_assets.intervals.grid import Unit
from backfill_assets.models.kind import IncrementalByTimeRange
from backfill_assets.models.source import Source

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model
    from backfill_assets.models.upstream import Upstream
    from backfill_assets.snapshots.state_view import ModelState, StateView

BYTES_PER_BATCH = 512 * 2**20
"""How many bytes of compressed files a batch reads for its cells, where a model declares no size.

Large enough that what a batch costs before its first row, some seconds, is a small part of it, and
that Spark, which cuts files into pieces of 128 MiB, has work for four cores. Small enough that a batch
which fails or is stopped loses little, and that its rows, several times as large in memory, can be
sorted on one machine.
"""


class SizedBy(StrEnum):
    """What decides how many cells go in one batch.

    Attributes:
        DECLARED: the model's `batch_size`.
        IN_ORDER: the model reads its own earlier cells, so each is a batch.
        BYTES: the bytes of its inputs per cell.
        NOTHING: the model declares no size, and no bytes of its inputs are recorded: there is no limit.
    """

    DECLARED = "declared"
    IN_ORDER = "in order"
    BYTES = "bytes"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class BatchSize:
    """How many cells of a model go in one batch, and why.

    Attributes:
        by: what decides it.
        cells: at most so many; None for any number of consecutive ones.
        bytes_per_cell: about how many bytes of its inputs each reads, at least 1; 0 where that is not
            known.
    """

    by: SizedBy
    cells: int | None = None
    bytes_per_cell: int = 0


def batch_size(graph: Graph, view: StateView, model: Model) -> BatchSize:
    """Say how many cells of a model go in one batch.

    Inputs that every batch reads whole don't count, and neither do lookbacks: smaller batches read no
    less of them. If no bytes of one input are recorded, the size is unknown. The number is a
    power of two, so that the same cells make the same batches while inputs grow.

    Args:
        graph: the models and sources that are read.
        view: the recorded state of them.
        model: whose batches.
    """
    a_cell = _bytes_per_cell(graph, view, model)
    if model.in_order:
        return BatchSize(SizedBy.IN_ORDER, 1, a_cell)
    if model.batch_size is not None:
        return BatchSize(SizedBy.DECLARED, model.batch_size, a_cell)
    if not a_cell:
        return BatchSize(SizedBy.NOTHING)
    return BatchSize(SizedBy.BYTES, 1 << max(BYTES_PER_BATCH // a_cell, 1).bit_length() - 1, a_cell)


def joins_stretches(model: Model) -> bool:
    """Whether a batch of a model may have several stretches of cells.

    A model that reads its own cells needs those before them published, and a merge compares the keys of
    its cells with those of all others, so each of their stretches is a batch.
    """
    return isinstance(model.kind, IncrementalByTimeRange) and not model.in_order


def _bytes_per_cell(graph: Graph, view: StateView, model: Model) -> int:
    if model.cadence.unit is Unit.WHOLE:
        return 0
    cut = (read for read in model.reads if read.name != model.name and _is_cut(graph, read))
    rates = [_bytes_per_second(graph, view, read) for read in cut]
    return ceil(sum(rates) * model.cadence.unit.shortest) if all(rates) else 0


def _is_cut(graph: Graph, upstream: Upstream) -> bool:
    """Whether smaller batches read less of an input."""
    node = graph.node(upstream.name)
    return node.cadence.unit is not Unit.WHOLE and node.time_column is not None


def _bytes_per_second(graph: Graph, view: StateView, upstream: Upstream) -> float:
    """Compute how many bytes an input holds per second of its cells; 0 where it is not known."""
    node = graph.node(upstream.name)
    is_source = isinstance(node, Source)
    state: ModelState | None = (view.sources if is_source else view.models).get(upstream.name)
    return 0 if state is None else state.bytes_per_second
