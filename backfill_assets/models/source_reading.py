"""The part of its sources' declarations that a model's data depends on; it is in the fingerprint."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.intervals.cadence import Cadence
from backfill_assets.intervals.grid import Unit
from backfill_assets.models.codec import dumps, loads
from backfill_assets.models.column import Column
from backfill_assets.models.graph import Graph
from backfill_assets.models.source import Source, TimeColumns
from backfill_assets.models.sql.lineage import lineage_of
from backfill_assets.models.sql.query import SqlQuery

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from backfill_assets.models.model import Model


@dataclass(frozen=True, slots=True)
class SourceReading:
    """The declarations that decide how a source's rows reach a model.

    Attributes:
        source: its name.
        time_column: what its cells are cut by; None for one that is read as a whole.
        unit: the length of its cells.
        tz: the zone that they are cut in.
        columns: names and types, in order.
    """

    source: str
    time_column: str | None
    unit: Unit
    tz: str
    columns: tuple[tuple[str, str], ...]

    @property
    def grid(self) -> tuple[object, ...]:
        """How its rows become cells."""
        return self.time_column, self.unit, self.tz


def source_readings(graph: Graph, model: Model) -> tuple[SourceReading, ...]:
    """Give the reading of each source that a model reads, by name, as it is declared now."""
    names = sorted({read.name for read in model.reads if read.name in graph.sources})
    return tuple(_reading(graph.sources[name]) for name in names)


def changed_sources(
    graph: Graph, model: Model, known: tuple[SourceReading, ...] | None
) -> tuple[str, ...]:
    """Name the sources whose declarations have changed in parts that a model reads.

    Args:
        graph: the models and sources as they are declared now.
        model: the reader.
        known: what it relied on before; None where that was never kept, and counts as the same.
    """
    before = {reading.source: reading for reading in known or ()}
    pairs = ((before.get(now.source), now) for now in source_readings(graph, model))
    return tuple(
        now.source
        for old, now in pairs
        if old is not None and old != now and _matters(graph, model, old, now)
    )


def declared_as(source: Source, reading: SourceReading) -> Source:
    """Declare a source as a reader relies on it; the other attributes are as declared now."""
    declared = {(column.name, column.dtype): column for column in source.schema}
    return replace(
        source,
        cadence=replace(source.cadence, unit=reading.unit, tz=reading.tz),
        columns=[declared.get(column, Column(*column)) for column in reading.columns],
        times=replace(source.times, event=reading.time_column),
    )


def declared_once(reading: SourceReading) -> Source:
    """Declare a source that is not declared any more, as a reader relied on it; where it lay is not known."""
    return Source(
        name=reading.source,
        path="",
        cadence=Cadence(unit=reading.unit, tz=reading.tz),
        columns=[Column(*column) for column in reading.columns],
        times=TimeColumns(event=reading.time_column),
    )


def with_relied_on(
    sources: Mapping[str, Source], relied: Iterable[tuple[SourceReading, ...] | None]
) -> dict[str, Source]:
    """Give declared sources, and those that readers rely on and that are not declared any more."""
    gone = {
        reading.source: reading
        for readings in relied
        for reading in readings or ()
        if reading.source not in sources
    }
    return {**{name: declared_once(reading) for name, reading in gone.items()}, **sources}


def readings_text(readings: tuple[SourceReading, ...]) -> str:
    """Write readings as JSON values."""
    return dumps(readings)


def read_readings(text: str | None) -> tuple[SourceReading, ...] | None:
    """Read stored readings; None where none were stored."""
    return None if text is None else loads(text, (SourceReading, Unit))


def _reading(source: Source) -> SourceReading:
    cadence = source.cadence
    columns = tuple((column.name, column.dtype) for column in source.schema)
    return SourceReading(source.name, source.time_column, cadence.unit, str(cadence.tz), columns)


def _matters(graph: Graph, model: Model, old: SourceReading, now: SourceReading) -> bool:
    if old.grid != now.grid:
        return True
    differing = {name.lower() for name, _ in {*old.columns} ^ {*now.columns}}
    reads = [*_reads(graph, model, old), *_reads(graph, model, now)]
    if len(reads) < len((old, now)):
        return True
    return bool(differing & {name.lower() for name in frozenset[str]().union(*reads)})


def _reads(graph: Graph, model: Model, reading: SourceReading) -> Iterator[frozenset[str]]:
    """Give the columns that a model reads of a source with these columns; empty where all count.

    A natural join reads the columns that its sides share, even if the query does not name them.
    """
    query = model.logic
    if not isinstance(query, SqlQuery) or re.search(r"\bnatural\b", query.sql, re.IGNORECASE):
        return
    declared = replace(
        graph.sources[reading.source],
        columns=[Column(name, dtype) for name, dtype in reading.columns],
    )
    sources: Mapping[str, Source] = {**graph.sources, reading.source: declared}
    columns = lineage_of(Graph(graph.models, sources, graph.order), model).reads.get(reading.source)
    if columns is not None:
        yield columns
