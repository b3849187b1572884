"""Which models a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph


def selected(graph: Graph, select: str) -> tuple[str, ...]:
    """Read ``a.b,c.d`` as models in the order of dependency; nothing means all.

    Raises:
        UnknownModelError: a name is no model.
    """
    if not select.strip():
        return graph.order
    chosen = {graph.model(name.strip()).name for name in select.split(",") if name.strip()}
    return tuple(name for name in graph.order if name in chosen)
