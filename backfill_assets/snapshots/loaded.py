"""The loaded declarations: the graph, and the values that follow from the graph alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.models.lineage import lineage_of
from backfill_assets.snapshots.snapshot import Snapshot, snapshots_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.graph import Graph


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

    @property
    def fingerprints(self) -> dict[str, str]:
        """The fingerprint id of every model."""
        return {name: one.fingerprint.id for name, one in self.snapshots.items()}


def loaded(graph: Graph) -> Loaded:
    """Fingerprint and trace every model of a graph."""
    reads = {name: lineage_of(graph, model).reads for name, model in graph.models.items()}
    return Loaded(graph, snapshots_of(graph), reads)
