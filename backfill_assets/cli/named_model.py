"""The model that a command is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.models.graph import unknown_model

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model


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
