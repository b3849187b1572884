"""Read the models that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.models.graph import unknown_model

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model


def selected(graph: Graph, select: str) -> tuple[str, ...]:
    """Read ``a.b,c.d`` as models in the order of dependency; an empty text means all.

    Raises:
        RequestError: a name is no model; it says which one may be meant.
        RequestError: a name is a source.
    """
    if not select.strip(" ,"):
        return graph.order
    chosen = {model_named(graph, name.strip()).name for name in select.split(",") if name.strip()}
    return tuple(name for name in graph.order if name in chosen)


def model_named(graph: Graph, name: str) -> Model:
    """Give the model of a name.

    Raises:
        RequestError: there is none; it says which one may be meant.
        RequestError: it is a source.
    """
    if name in graph.sources:
        raise RequestError(
            found=f"'{name}' is a source: it is written elsewhere, and nothing of it is filled",
            do="name a model",
        )
    if name not in graph.models:
        raise unknown_model(name, graph.models)
    return graph.models[name]
