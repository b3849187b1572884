"""The graph: every model and source by name, checked as a whole, in the order of dependency."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, TypeVar, cast

from backfill_assets.errors import DeclarationError, RequestError
from backfill_assets.intervals.grid import Unit
from backfill_assets.intervals.zones import DAY
from backfill_assets.models.audit import ROWS, Complete, Reconciles, References, Unique
from backfill_assets.models.audit_rules import check_audits
from backfill_assets.models.audits_of import audits_of
from backfill_assets.models.cadence_rules import require_cadence
from backfill_assets.models.cells import counted_in
from backfill_assets.models.column import (
    canonical_type,
    require_columns,
    require_comparable,
    require_storable,
)
from backfill_assets.models.consumer import Consumer
from backfill_assets.models.declared_values import (
    FLAG,
    one_word_of,
    require_distinct,
    require_values,
)
from backfill_assets.models.kind import (
    IncrementalByUniqueKey,
    SoftDelete,
    Tombstone,
)
from backfill_assets.models.model import Model
from backfill_assets.models.python.python_guard import check_python
from backfill_assets.models.source import Source, not_declared
from backfill_assets.models.sql.bounds import check_bounds
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.sql.sql_volatility import check_stable
from backfill_assets.models.time_column import require_time_column
from backfill_assets.models.upstream import Reopens

if TYPE_CHECKING:
    from collections.abc import Mapping

_Node = TypeVar("_Node", Model, Source, Consumer)


class UnknownModelError(RequestError):
    """A name, or a selector, stands for no model of the catalog."""


def unknown_model(name: str, known: Iterable[str]) -> UnknownModelError:
    """Say that a name is no model (or source), and which one may be meant."""
    return UnknownModelError(
        found=f"there is no model or source '{name}'", do=close_to(name, known)
    )


def _unknown_upstream(name: str, names: Iterable[str], *, named_by: str) -> DeclarationError:
    return DeclarationError(
        found=f"there is no model or source '{name}' (named by '{named_by}')",
        do=close_to(name, names),
    )


def close_to(name: str, known: Iterable[str]) -> str:
    """Say which of the known names may be meant, or which there are."""
    listed = sorted(known)
    close = get_close_matches(name, listed, n=1)
    return f"did you mean '{close[0]}'?" if close else f"known are {', '.join(listed)}"


def cycle_in_graph(names: tuple[str, ...]) -> DeclarationError:
    """Name the circle in which models read each other."""
    return DeclarationError(
        found=f"models read each other in a circle: {' -> '.join(names)}",
        do="remove one of the upstreams, since none of their cells could be built first",
    )


_MOST_DAYS = 36_500


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
            RequestError: there is none of that name.
        """
        if name not in self.models:
            raise unknown_model(name, self.models)
        return self.models[name]

    def consumer(self, name: str) -> Consumer:
        """Find a declared consumer.

        Raises:
            RequestError: there is none of that name.
        """
        if name not in self.consumers:
            declare = "declare it in CONSUMERS of the catalog"
            raise RequestError(
                found=f"there is no consumer '{name}'",
                do=close_to(name, self.consumers) if self.consumers else declare,
            )
        return self.consumers[name]

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
        by_upstream: dict[str, list[str]] = {}
        for reader in self.order:
            for name in dict.fromkeys(up.name for up in self.models[reader].reads):
                if name != reader:
                    by_upstream.setdefault(name, []).append(reader)
        return {name: tuple(readers) for name, readers in by_upstream.items()}


def build_graph(
    models: Iterable[Model], sources: Iterable[Source], consumers: Iterable[Consumer] = ()
) -> Graph:
    """Check all declarations together and order them.

    Raises:
        DeclarationError: what is given holds something else than models, sources or consumers.
        DeclarationError: two share a name.
        DeclarationError: a column has a type that Spark does not have, or that no Delta table gives back.
        DeclarationError: a column has a name that its table can't store, or that another one has.
        DeclarationError: what is either True or False is neither.
        DeclarationError: a key, `latest_by` or a unique column holds maps or variants.
        DeclarationError: a cadence starts before 1970, or its cron never ticks.
        DeclarationError: rows that are gone are kept or marked where cells are replaced, or by no boolean.
        DeclarationError: tombstones delete keys that move.
        DeclarationError: a model reads its own cells, and not earlier ones.
        DeclarationError: an audit can't be run over its rows.
        DeclarationError: a time column is too coarse for its grid, or no time at all.
        DeclarationError: an upstream, an audit or a consumer names nothing that exists.
        DeclarationError: a consumer reads a column that the model does not have.
        DeclarationError: a query reads a table that its model does not declare.
        DeclarationError: an audit or a time column names no column of an upstream.
        DeclarationError: models read each other in a circle.
        DeclarationError: a query is to be bounded on a column that its upstream's cells are not cut by.
        DeclarationError: a query is bounded on another column than the declared one.
        DeclarationError: a query includes the exclusive end of its interval.
        DeclarationError: an incremental query has no bounds, or dates where instants are meant.
        DeclarationError: a query has a name that may be an upstream's or another.
        DeclarationError: a query would answer differently tomorrow.
        DeclarationError: a Python model reads what its snapshot can't store.
    """
    graph = stored_graph(
        _all_of(Model, models), _all_of(Source, sources), _all_of(Consumer, consumers)
    )
    for source in graph.sources.values():
        names = (column.name.lower() for column in source.schema)  # Spark takes no notice of case
        require_distinct(f"source '{source.name}'", "columns", names, "each name once")
        require_columns(f"source '{source.name}'", source.schema)
        require_cadence(f"source '{source.name}'", source.cadence)
        _check_times(source)
        _check_time_column(source)
    for model in graph.models.values():
        require_columns(f"model '{model.name}'", model.schema)
        require_storable((column.name for column in model.schema), f" of model '{model.name}'")
        _check_flags(model)
        require_cadence(f"model '{model.name}'", model.cadence)
        _check_time_column(model)
        _check_compared(model)
        _check_deletes(model)
        _check_upstreams(graph, model)
        _check_reach(graph, model)
        _check_audits(graph, model)
        check_audits(model)
        check_stable(model, _columns_read(graph, model))
        check_python(model)
        check_bounds(model, {up.name: graph.node(up.name) for up in model.reads})
    for consumer in graph.consumers.values():
        _check_consumer(graph, consumer)
    return graph


def _all_of(kind: type[_Node], declared: object) -> list[_Node]:
    """Give the nodes of a catalog, which a person wrote: it may hold anything.

    Raises:
        DeclarationError: it is no collection, or holds something else.
    """
    is_collection = isinstance(declared, Iterable)
    values: list[object] = [*cast("Iterable[object]", declared)] if is_collection else [declared]
    nodes = [node for node in values if is_collection and isinstance(node, kind)]
    if len(nodes) == len(values):
        return nodes
    name = kind.__name__
    wrong = next(node for node in values if node not in nodes)
    raise DeclarationError(
        found=f"{name.upper()}S has {wrong!r:.60}, which is no {name}",
        expected=f"a list of {name}s",
        do="correct it in the catalog",
    )


def stored_graph(
    models: Iterable[Model], sources: Iterable[Source] = (), consumers: Iterable[Consumer] = ()
) -> Graph:
    """Order models that were checked when they were declared.

    A release with more checks must still run the snapshots that an environment has stored.

    Raises:
        DeclarationError: two nodes have one name.
        DeclarationError: an upstream is declared nowhere.
        DeclarationError: models read each other in a circle.
    """
    by_name = _unique({}, models)
    source_by_name = _unique(by_name, sources)
    order = _ordered(by_name, source_by_name)
    return Graph(by_name, source_by_name, order, _unique({}, consumers))


def with_upstreams(models: Mapping[str, Model], names: Iterable[str]) -> dict[str, Model]:
    """Give the models of these names that there are, and all that they read, directly or not."""
    taken: dict[str, Model] = {}
    remaining = [*names]
    while remaining:
        name = remaining.pop()
        if name in models and name not in taken:
            taken[name] = models[name]
            remaining += [upstream.name for upstream in models[name].reads]
    return taken


def _unique(taken: Mapping[str, object], nodes: Iterable[_Node]) -> dict[str, _Node]:
    by_name: dict[str, _Node] = {}
    for node in nodes:
        if node.name in by_name or node.name in taken:
            raise DeclarationError(
                found=f"'{node.name}' is declared twice", do="every declaration has its own name"
            )
        by_name[node.name] = node
    return by_name


def _ordered(models: Mapping[str, Model], sources: Mapping[str, Source]) -> tuple[str, ...]:
    names = {*models, *sources}
    sorter: TopologicalSorter[str] = TopologicalSorter()
    for name in sorted(models):
        reads = {up.name for up in models[name].reads}
        for upstream in sorted(reads - names):
            raise _unknown_upstream(upstream, names, named_by=name)
        sorter.add(name, *sorted(reads - {name} - {*sources}))
    try:
        return tuple(sorter.static_order())
    except CycleError as error:
        raise cycle_in_graph(tuple(error.args[1])) from error


def _check_flags(model: Model) -> None:
    require_values(f"model '{model.name}'", model, _FLAGS)
    if isinstance(model.kind, IncrementalByUniqueKey):
        require_values(f"model '{model.name}'", model.kind, {"rows_move": FLAG})


_FLAGS = {"audit_columns": FLAG, "volatile": FLAG, "forward_only": FLAG}


def _check_deletes(model: Model) -> None:
    """Refuse marks of deleted rows that a model can't keep; ``none`` and ``absent`` say nothing of a model that does not merge.

    Of keys that move no tombstone is stored, so an older cell that is built again has its key back.
    """
    policy = model.delete_policy
    if not isinstance(policy, (SoftDelete, Tombstone)):
        return
    if not isinstance(model.kind, IncrementalByUniqueKey):
        raise DeclarationError(
            found=f"model '{model.name}' has deletes={policy!r} and is {type(model.kind).__name__}, which "
            "replaces its cells as a whole, rows that are gone included",
            expected="deletes='absent', the default, or the kind IncrementalByUniqueKey",
            do="leave `deletes` out: that rebuilds nothing",
        )
    _check_marker(model, policy)
    if model.moves_rows and isinstance(policy, Tombstone):
        marker = policy.column
        raise DeclarationError(
            found=f"model '{model.name}' has rows_move=True and Tombstone('{marker}'), with which a deleted key "
            "would be back as soon as an older cell that has it is built again",
            do=f"use deletes='none' with latest_by, and let readers leave out the rows where {marker} is TRUE; "
            "or rows_move=False",
        )


def _check_marker(model: Model, policy: SoftDelete | Tombstone) -> None:
    """Refuse a mark of deleted rows that can't be TRUE, or that would make another key of them.

    Spark reads a text, such as 'true', as TRUE; none is written.
    """
    marker = policy.column
    types = {"boolean", "string"} if isinstance(policy, Tombstone) else {"boolean"}
    (dtype,) = (canonical_type(column.dtype) for column in model.schema if column.name == marker)
    if dtype not in types or marker in model.key:
        found = "a part of its key" if marker in model.key else f"of the type {dtype}"
        raise DeclarationError(
            found=f"model '{model.name}' marks deleted rows by '{marker}', which is {found}",
            expected="a boolean column beside the key",
        )


def _check_compared(model: Model) -> None:
    """Refuse a key, an order and unique values that can't be compared."""
    compared = {
        f"the audit {audit.name}": audit.columns
        for audit in audits_of(model)
        if isinstance(audit, Unique)
    }
    compared["the key"] = tuple(model.key)
    if isinstance(model.kind, IncrementalByUniqueKey) and model.kind.latest_by is not None:
        compared["latest_by"] = (model.kind.latest_by,)
    for what, names in sorted(compared.items(), reverse=True):
        columns = (column for column in model.schema if column.name in names)
        require_comparable(f"model '{model.name}'", columns, what)


def _check_times(source: Source) -> None:
    names = {column.name for column in source.schema}
    for role, column in source.times.named():
        if column not in names:
            raise not_declared(source, role, column)


def _check_time_column(node: Model | Source) -> None:
    for column in node.schema:
        if column.name == node.time_column:
            dtype = canonical_type(column.dtype)
            require_time_column(f"{node.name}.{column.name}", dtype, node.cadence)


def _columns_read(graph: Graph, model: Model) -> frozenset[str]:
    return frozenset(
        column.name.lower() for up in model.reads for column in graph.node(up.name).schema
    )


def _check_upstreams(graph: Graph, model: Model) -> None:
    if isinstance(model.logic, SqlQuery):
        undeclared = model.logic.tables() - {up.name for up in model.reads}
        if undeclared:
            raise DeclarationError(
                found=f"the query of '{model.name}' reads {', '.join(sorted(undeclared))}, which the model "
                "does not declare as upstream, so a change there would go unseen",
                do="add it to `upstreams`",
            )
        model.logic.require_placeable(_columns_read(graph, model))
        _check_outputs(model, model.logic)
    for upstream in model.reads:
        words = {"reopens": (Reopens, one_word_of(Reopens))}
        require_values(f"upstream '{upstream.name}' of model '{model.name}'", upstream, words)
        if upstream.name == model.name and (
            not upstream.cells_back or model.cadence.unit is Unit.WHOLE
        ):
            raise DeclarationError(
                found=f"model '{model.name}' reads itself, and no earlier cell of itself",
                expected=f"Upstream('{model.name}', lookback=1) in a model with cells: a cell is never made of its "
                "own rows",
            )
        if upstream.time_column is not None:
            _require_column(graph, model, upstream.name, upstream.time_column)
            _check_cut(graph.node(upstream.name), model, upstream.time_column)


def _check_reach(graph: Graph, model: Model) -> None:
    """Refuse counts of cells that reach so far back that there is no date."""
    counts = [("late_window", model.late_window, model.cadence)]
    for up in model.reads:
        cadence = counted_in(model.cadence, up, graph.node(up.name).cadence)
        counts.append((f"lookback of '{up.name}'", up.cells_back, cadence))
    counts += [
        (f"seen of audit '{audit.name}'", audit.seen, model.cadence)
        for audit in model.audits
        if isinstance(audit, Complete)
    ]
    for name, count, cadence in counts:
        days = count * cadence.unit.shortest // DAY
        if cadence.unit is not Unit.WHOLE and days > _MOST_DAYS:
            raise DeclarationError(
                found=f"model '{model.name}': found {count} cells as {name}, which last {days} days or more",
                expected=f"at most {_MOST_DAYS} days",
            )


def _check_cut(upstream: Model | Source, model: Model, column: str) -> None:
    """Refuse bounds on a column that does not say which cells of an upstream are read.

    Pins, pruning and what has changed go by the upstream's own cells. A row that another time puts into a
    later cell would be read for no cell, whatever the lookback, once it comes later than that.
    """
    if upstream.cadence.unit is Unit.WHOLE or upstream.time_column in {None, column}:
        return
    raise DeclarationError(
        found=f"model '{model.name}' reads '{upstream.name}' with time_column='{column}', but its cells are "
        f"cut by '{upstream.time_column}', so rows whose two times lie in different cells would be in none",
        expected=f"bounds on '{upstream.time_column}'",
        do=f"To cut a source by '{column}', declare it once more, under another name, with "
        f"TimeColumns(event='{column}')",
    )


def _check_outputs(model: Model, query: SqlQuery) -> None:
    """Refuse a query whose columns are not the declared ones, as far as its text names them.

    Spark gives a column in the case in which it is written, and a table has it in the declared one.
    """
    names = query.output_names()
    if names is None:
        return
    gives, declared = Counter(names), Counter(column.name for column in model.schema)
    differing = [
        f"{words} {', '.join(sorted(found))}"
        for words, found in (
            ("does not give", declared - gives),
            ("gives, undeclared,", frozenset(gives) - frozenset(declared)),
            ("gives more than once", [name for name in declared if gives[name] > 1]),
        )
        if found
    ]
    if not differing:
        return
    raise DeclarationError(
        found=f"the query of '{model.name}' {', and '.join(differing)}",
        expected="exactly the declared columns",
        do="rename in the query, or change the declaration",
    )


def _require_column(graph: Graph, model: Model, upstream: str, column: str) -> None:
    if column not in {declared.name for declared in graph.node(upstream).schema}:
        raise DeclarationError(
            found=f"'{model.name}' names column '{column}' of '{upstream}', which has no such "
            "column",
            do="correct the name (in an audit, or as time column), or declare the column there",
        )


def _check_audits(graph: Graph, model: Model) -> None:
    reads = {up.name for up in model.reads}
    for audit in model.audits:
        if not isinstance(audit, (References, Reconciles)):
            continue
        if audit.upstream not in reads:
            raise _unknown_upstream(audit.upstream, reads, named_by=f"{model.name}.{audit.name}")
        if not (isinstance(audit, Reconciles) and audit.to_column == ROWS):
            _require_column(graph, model, audit.upstream, audit.to_column)


def _check_consumer(graph: Graph, consumer: Consumer) -> None:
    days = {"notice_days": consumer.notice_days}
    days |= {f"days_back of '{each.model}'": each.days_back or 0 for each in consumer.reads}
    for name, count in days.items():
        if count > _MOST_DAYS:
            raise DeclarationError(
                found=f"consumer '{consumer.name}': found {count} as {name}",
                expected=f"at most {_MOST_DAYS}; no days_back stands for all of history",
            )
    for reading in consumer.reads:
        if reading.model not in graph.models:
            raise _unknown_upstream(reading.model, graph.models, named_by=consumer.name)
        columns = [column.name for column in graph.models[reading.model].schema]
        for column in reading.columns:
            if column not in columns:
                raise DeclarationError(
                    found=f"consumer '{consumer.name}' reads '{column}' of '{reading.model}', which "
                    f"has the columns {', '.join(columns)}",
                    do="correct the name, or declare the column there",
                )
