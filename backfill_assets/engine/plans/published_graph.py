"""Models as they are published, and what they need there, whether they are declared or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.project.relied_sources import Relied, as_relied_on
from backfill_assets.models.graph import stored_graph, with_upstreams
from backfill_assets.models.source_reading import read_readings, with_relied_on
from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.planning.rule.needs_work import needs_work

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.engine.plans.operation import Operation
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.rule.needs_work import Work
    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.snapshots.state_view import StateView


def published_graph(
    op: Operation,
    pointers: Mapping[str, Pointer],
    running: Graph,
) -> Graph:
    """Put models together as their pointers name them, with all that they read.

    Args:
        op: who asks.
        pointers: by model.
        running: what the plan's environment runs; its sources count as they are declared there, and other models as
            they run.
    """
    models, relied = {**running.models}, dict[str, Relied]()
    for name, at in pointers.items():
        stored = op.store.snapshots.get(at.fingerprint)
        models[name] = stored.declared
        relied[name] = read_readings(stored.sources)
    # A model that is not run any more may have readers, which are not asked about here.
    read = with_upstreams(models, relied)
    sources = with_relied_on(running.sources, relied.values())
    graph = stored_graph(read.values(), sources.values())
    return as_relied_on(graph, relied, relied)[0]


def work_there(op: Operation, graph: Graph, view: StateView, name: str) -> Work:
    """Ask the rule what a model of such a graph needs."""
    model = graph.model(name)
    reads = lineage_of(graph, model).reads
    return needs_work(graph, view, model, now=op.clock(), reads=reads)
