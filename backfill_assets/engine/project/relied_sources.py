"""Sources as an environment's snapshots rely on them: what is loaded counts once a plan has promoted it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from backfill_assets.models.source_reading import changed_sources, declared_as

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.source import Source
    from backfill_assets.models.source_reading import SourceReading


Relied: TypeAlias = "tuple[SourceReading, ...] | None"
Misread: TypeAlias = "Mapping[str, Mapping[str, tuple[str, ...]]]"
"""By model, the sources that it relies on otherwise than they are read; and of each of them the models
that a plan has to make anew, until all of its readers rely on what is loaded."""


def as_relied_on(
    graph: Graph, relied: Mapping[str, Relied], own: Collection[str]
) -> tuple[Graph, Misread]:
    """Declare each source as the snapshots of an environment rely on it.

    Where they disagree, that declaration counts which most of them can be run with: of the
    environment's own snapshots first, then of those that it follows; the loaded one, if it is as good.

    Args:
        graph: the models that the environment runs, and the loaded sources.
        relied: by model, what the snapshot that its pointer names relies on of its sources.
        own: the models that have a pointer of the environment's own.

    Returns:
        The graph with these sources; and the models that rely on them otherwise.
    """
    loaded = graph
    readers = {name: readings for name, readings in relied.items() if name in graph.models}
    behind = _misread(loaded, readers)
    odd = sorted({source for sources in behind.values() for source in sources})
    for source in odd:
        candidates = [
            graph,
            *(_with(graph, declared) for declared in _known(graph, readers, source)),
        ]
        graph = min(candidates, key=lambda candidate: _left_out(candidate, readers, source, own))
    to_plan = {
        source: tuple(name for name, sources in behind.items() if source in sources)
        for source in odd
    }
    misread = _misread(graph, readers)
    return graph, {
        name: {source: to_plan[source] for source in sources} for name, sources in misread.items()
    }


def _misread(graph: Graph, readers: Mapping[str, Relied]) -> dict[str, tuple[str, ...]]:
    misread = {
        name: changed_sources(graph, graph.models[name], readings)
        for name, readings in readers.items()
    }
    return {name: sources for name, sources in misread.items() if sources}


def _known(graph: Graph, readers: Mapping[str, Relied], source: str) -> Iterator[Source]:
    """Give a source in every way that a snapshot relies on it."""
    readings: dict[SourceReading, None] = {
        reading: None
        for relied in readers.values()
        for reading in relied or ()
        if reading.source == source
    }
    return (declared_as(graph.sources[source], reading) for reading in readings)


def _with(graph: Graph, source: Source) -> Graph:
    return replace(graph, sources={**graph.sources, source.name: source})


def _left_out(
    graph: Graph, readers: Mapping[str, Relied], source: str, own: Collection[str]
) -> tuple[int, int]:
    """Count the snapshots that can't be run: the environment's own, and others."""
    otherwise = [name for name, sources in _misread(graph, readers).items() if source in sources]
    mine = sum(name in own for name in otherwise)
    return mine, len(otherwise) - mine
