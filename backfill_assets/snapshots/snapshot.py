"""A snapshot: a model at one fingerprint, with everything that running it later needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.models import audit, kind, number
from backfill_assets.models.automation import Automation
from backfill_assets.models.codec import dumps, loads
from backfill_assets.models.column import Column
from backfill_assets.models.fingerprint import Fingerprint, fingerprints
from backfill_assets.models.key_ranges import KeyRanges
from backfill_assets.models.model import Model
from backfill_assets.models.python.function_query import FunctionQuery, ModuleQuery, StoredFile
from backfill_assets.models.python.own_modules import StoredModule
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.source_reading import SourceReading, source_readings
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import OwnCells, Reopens, Upstream

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A model at one fingerprint.

    Attributes:
        model: the declaration, its query in storable form.
        fingerprint: what logic, upstream and metadata hash to.
        sources: what it relies on of its sources; None where a release before this was kept has
            stored it.
    """

    model: Model
    fingerprint: Fingerprint
    sources: tuple[SourceReading, ...] | None = None

    @property
    def version(self) -> str:
        """The id of the physical Delta table: logic and upstream, not metadata."""
        return f"{self.model.name.replace('.', '__')}__{self.fingerprint.data[:10]}"

    def definition(self) -> str:
        """Write everything that running this snapshot later needs, as JSON text."""
        return dumps(self.model)


def snapshots_of(graph: Graph) -> dict[str, Snapshot]:
    """Take a snapshot of every model of a graph, by name."""
    prints = fingerprints(graph)
    return {
        name: Snapshot(graph.models[name], print_, source_readings(graph, graph.models[name]))
        for name, print_ in prints.items()
    }


def stored_model(definition: str) -> Model:
    """Read back the model of a stored snapshot."""
    return loads(definition, STORED)


STORED = (
    Model, SqlQuery, ModuleQuery, StoredModule, StoredFile, FunctionQuery, Upstream, OwnCells, Reopens, Automation, Cadence, Unit, Column,
    TimeColumns,
    audit.RowRule, audit.Unique, audit.RowCountWithin, audit.References, audit.Reconciles,
    audit.NumberWithin, audit.NearPublished, audit.NearNeighbours, audit.Fresh, audit.Complete, audit.KnownRows, audit.KnownRow,
    audit.SqlAudit, audit.PythonAudit, audit.Severity, number.Number, number.Of,
    KeyRanges, kind.IncrementalByTimeRange, kind.IncrementalByUniqueKey, kind.Full,
    kind.KeepsDeleted, kind.AbsentMeansDeleted, kind.SoftDelete, kind.Tombstone,
)  # fmt: skip
"""Every type that occurs in a stored model."""
