"""The graph: every model and source by name, checked as a whole, in the order of dependency."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, TypeVar

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.audit import ROWS, Reconciles, References
from backfill_assets.models.bounds import check_bounds
from backfill_assets.models.consumer import Consumer, UnknownConsumedColumnError
from backfill_assets.models.model import Model
from backfill_assets.models.python_guard import check_python
from backfill_assets.models.query import SqlQuery
from backfill_assets.models.source import Source
from backfill_assets.models.volatile import check_stable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_Node = TypeVar("_Node", Model, Source, Consumer)


class UnknownModelError(BackfillAssetsError):
    """A name is no model (or source) of the graph."""

    def __init__(self, name: str, known: Iterable[str], *, named_by: str = "") -> None:
        self.name = name
        listed = sorted(known)
        close = get_close_matches(name, listed, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"known are {', '.join(listed)}"
        by = f" (named by '{named_by}')" if named_by else ""
        super().__init__(f"there is no model or source '{name}'{by}; {hint}")


class DuplicateNameError(BackfillAssetsError):
    """Two declarations share a name."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"'{name}' is declared twice; every declaration has its own name")


class CycleInGraphError(BackfillAssetsError):
    """Models read each other in a circle."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        super().__init__(
            f"models read each other in a circle: {' -> '.join(names)}; no cell of them could ever "
            "be first, take one of the upstreams out"
        )


class UnknownUpstreamColumnError(BackfillAssetsError):
    """An audit, or a declared time column, names a column that the upstream does not have."""

    def __init__(self, *, model: str, upstream: str, column: str) -> None:
        self.model, self.upstream, self.column = model, upstream, column
        super().__init__(
            f"'{model}' names column '{column}' of '{upstream}', which has no such column; correct "
            "the name (in an audit, or as time column), or declare the column there"
        )


class UndeclaredUpstreamError(BackfillAssetsError):
    """A query reads a table that its model does not declare."""

    def __init__(self, *, model: str, tables: Iterable[str]) -> None:
        self.model, self.tables = model, tuple(sorted(tables))
        super().__init__(
            f"the query of '{model}' reads {', '.join(self.tables)}, which the model does not "
            "declare as upstream, so a change there would go unseen; add it to `upstreams`"
        )


@dataclass(frozen=True)
class Graph:
    """Models and sources by name.

    Attributes:
        models: every model.
        sources: every source.
        order: names of all models, upstream before downstream.
        consumers: who reads the models from outside, as far as that is declared.
    """

    models: Mapping[str, Model]
    sources: Mapping[str, Source]
    order: tuple[str, ...]
    consumers: Mapping[str, Consumer] = field(default_factory=dict[str, Consumer])

    def model(self, name: str) -> Model:
        """Find a model.

        Raises:
            UnknownModelError: there is none of that name.
        """
        if name not in self.models:
            raise UnknownModelError(name, self.models)
        return self.models[name]

    def node(self, name: str) -> Model | Source:
        """Find a model or source."""
        if name in self.sources:
            return self.sources[name]
        return self.model(name)

    def readers(self, name: str) -> tuple[str, ...]:
        """Name the models that read a model or source, in order."""
        return self._readers.get(name, ())

    @cached_property
    def _readers(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for reader in self.order:
            for name in dict.fromkeys(up.name for up in self.models[reader].reads):
                if name != reader:
                    found.setdefault(name, []).append(reader)
        return {name: tuple(readers) for name, readers in found.items()}


def build_graph(
    models: Iterable[Model], sources: Iterable[Source], consumers: Iterable[Consumer] = ()
) -> Graph:
    """Check all declarations together and order them.

    Raises:
        DuplicateNameError: two share a name.
        UnknownModelError: an upstream, an audit or a consumer names nothing that exists.
        UnknownConsumedColumnError: a consumer reads a column that the model does not have.
        UndeclaredUpstreamError: a query reads a table that its model does not declare.
        UnknownUpstreamColumnError: an audit or a time column names no column of an upstream.
        CycleInGraphError: models read each other in a circle.
        WrongTimeBoundError: a query is bounded on another column than the declared one.
        InclusiveEndError: a query includes the exclusive end of its interval.
        UnboundedQueryError: an incremental query has no bounds.
        UnplaceableTokenError: a query has a name that may be an upstream's or another.
        VolatileQueryError: a query would answer differently tomorrow.
        OutsideReadError: a Python model reads what its snapshot can't store.
    """
    graph = stored_graph(models, sources, consumers)
    for model in graph.models.values():
        _check_upstreams(graph, model)
        _check_audits(graph, model)
        check_stable(model, _columns_read(graph, model))
        check_python(model)
        check_bounds(model, {up.name: graph.node(up.name).time_column for up in model.reads})
    for consumer in graph.consumers.values():
        _check_consumer(graph, consumer)
    return graph


def stored_graph(
    models: Iterable[Model], sources: Iterable[Source] = (), consumers: Iterable[Consumer] = ()
) -> Graph:
    """Order models that were checked when they were declared.

    A release with more checks must still run the snapshots that an environment has stored.

    Raises:
        DuplicateNameError: two nodes have one name.
        UnknownModelError: an upstream is declared nowhere.
        CycleInGraphError: models read each other in a circle.
    """
    by_name = _unique({}, models)
    source_by_name = _unique(by_name, sources)
    order = _ordered(by_name, source_by_name)
    return Graph(by_name, source_by_name, order, _unique({}, consumers))


def _unique(taken: Mapping[str, object], nodes: Iterable[_Node]) -> dict[str, _Node]:
    found: dict[str, _Node] = {}
    for node in nodes:
        if node.name in found or node.name in taken:
            raise DuplicateNameError(node.name)
        found[node.name] = node
    return found


def _ordered(models: Mapping[str, Model], sources: Mapping[str, Source]) -> tuple[str, ...]:
    known = {*models, *sources}
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name in sorted(models):
        reads = {up.name for up in models[name].reads}
        for upstream in sorted(reads - known):
            raise UnknownModelError(upstream, known, named_by=name)
        sorter.add(name, *sorted(reads - {name} - {*sources}))
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        raise CycleInGraphError(tuple(error.args[1])) from error


def _columns_read(graph: Graph, model: Model) -> frozenset[str]:
    return frozenset(
        column.name.lower() for up in model.reads for column in graph.node(up.name).schema
    )


def _check_upstreams(graph: Graph, model: Model) -> None:
    if isinstance(model.logic, SqlQuery):
        undeclared = model.logic.tables() - {up.name for up in model.reads}
        if undeclared:
            raise UndeclaredUpstreamError(model=model.name, tables=undeclared)
        model.logic.require_placeable(_columns_read(graph, model))
    for upstream in model.reads:
        if upstream.time_column is not None:
            _require_column(graph, model, upstream.name, upstream.time_column)


def _require_column(graph: Graph, model: Model, upstream: str, column: str) -> None:
    if column not in {known.name for known in graph.node(upstream).schema}:
        raise UnknownUpstreamColumnError(model=model.name, upstream=upstream, column=column)


def _check_audits(graph: Graph, model: Model) -> None:
    reads = {up.name for up in model.reads}
    for audit in model.audits:
        if not isinstance(audit, (References, Reconciles)):
            continue
        if audit.upstream not in reads:
            raise UnknownModelError(audit.upstream, reads, named_by=f"{model.name}.{audit.name}")
        if not (isinstance(audit, Reconciles) and audit.to_column == ROWS):
            _require_column(graph, model, audit.upstream, audit.to_column)


def _check_consumer(graph: Graph, consumer: Consumer) -> None:
    for reading in consumer.reads:
        if reading.model not in graph.models:
            raise UnknownModelError(reading.model, graph.models, named_by=consumer.name)
        known = [column.name for column in graph.models[reading.model].schema]
        for column in reading.columns:
            if column not in known:
                raise UnknownConsumedColumnError(
                    consumer=consumer.name, model=reading.model, column=column, known=known
                )
