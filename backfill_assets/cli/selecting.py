"""Read the models that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.graph import UnknownModelError

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model


class NotAModelError(BackfillAssetsError):
    """A source was named where a model is required."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"'{name}' is a source: somebody else writes it and nothing is filled; name a model"
        )


def selected(graph: Graph, select: str) -> tuple[str, ...]:
    """Read ``a.b,c.d`` as models in the order of dependency; an empty text means all.

    Raises:
        UnknownModelError: a name is no model; it says which one may be meant.
        NotAModelError: a name is a source.
    """
    if not select.strip(" ,"):
        return graph.order
    chosen = {model_named(graph, name.strip()).name for name in select.split(",") if name.strip()}
    return tuple(name for name in graph.order if name in chosen)


def model_named(graph: Graph, name: str) -> Model:
    """Give the model of a name.

    Raises:
        UnknownModelError: there is none; it says which one may be meant.
        NotAModelError: it is a source.
    """
    if name in graph.sources:
        raise NotAModelError(name)
    if name not in graph.models:
        raise UnknownModelError(name, graph.models)
    return graph.models[name]
