"""The loaded declarations: the graph, and the values that follow from the graph alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.snapshots.snapshot import Snapshot, snapshots_of

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph


class Reads(Mapping[str, Mapping[str, frozenset[str]]]):
    """Per model, what it reads by column; a model's SQL is traced when it is asked for."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[str, Mapping[str, frozenset[str]]] = {}

    def __getitem__(self, name: str) -> Mapping[str, frozenset[str]]:
        """Trace one model."""
        if name not in self._known:
            self._known[name] = lineage_of(self._graph, self._graph.models[name]).reads
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        """Every model."""
        return iter(self._graph.models)

    def __len__(self) -> int:
        return len(self._graph.models)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The loaded declarations, with values that are computed only once.

    Attributes:
        graph: the models and sources.
        snapshots: every model at its fingerprint.
        reads: per model what it reads by column; an upstream that is missing is read as a whole.
    """

    graph: Graph
    snapshots: Mapping[str, Snapshot]
    reads: Mapping[str, Mapping[str, frozenset[str]]]

    @classmethod
    def of(cls, graph: Graph) -> Loaded:
        """Fingerprint every model of a graph; what one reads is traced when it is asked for."""
        return cls(graph, snapshots_of(graph), Reads(graph))

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprint id of every model."""
        return {name: snapshot.fingerprint.id for name, snapshot in self.snapshots.items()}
