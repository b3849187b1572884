"""Fingerprints: separate hashes of what a model's data depends on and of what only describes it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from backfill_assets.models.audit import PythonAudit
from backfill_assets.models.codec import dumps
from backfill_assets.models.python.function_query import FunctionQuery, changed_code
from backfill_assets.models.source_reading import source_readings
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.sql.sql_analysis import settled_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from backfill_assets.models.graph import Graph
    from backfill_assets.models.model import Model, Query
    from backfill_assets.models.source_reading import SourceReading


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Three hashes (hex SHA-256).

    Attributes:
        logic: of what computes the rows, formatting and comments left out.
        upstream: of the data hashes of every model that it reads, and of what it relies on of the
            declarations of its sources.
        metadata: of the whole declaration, words included.
    """

    logic: str
    upstream: str
    metadata: str

    @property
    def data(self) -> str:
        """The hash that names the physical table: logic and upstream."""
        return _hash(self.logic, self.upstream)

    @property
    def id(self) -> str:
        """The hash that names the snapshot: everything."""
        return _hash(self.logic, self.upstream, self.metadata)


def fingerprints(
    graph: Graph, known: Mapping[str, tuple[SourceReading, ...]] | None = None
) -> dict[str, Fingerprint]:
    """Fingerprint every model of a graph, upstream first.

    Args:
        graph: the models and sources.
        known: by model, the readings of its sources, where they differ from what the sources declare.
    """
    done: dict[str, Fingerprint] = {}
    for name in graph.order:
        model = graph.models[name]
        done[name] = Fingerprint(
            logic=_logic(model),
            upstream=_hash(
                *sorted(f"{up.name}={done[up.name].data}" for up in model.reads if up.name in done),
                *(
                    dumps(reading)
                    for reading in (known or {}).get(name, source_readings(graph, model))
                ),
            ),
            metadata=_hash(dumps(_described(model))),
        )
    return done


def changed_models(stored: Graph, loaded: Graph, resourced: Collection[str] = ()) -> frozenset[str]:
    """Name the models of both graphs whose rows, or whose upstreams' rows, are computed otherwise.

    Stored ids may come from an older release, which settled a query's text otherwise; so both
    sides are settled here and now, each from its author's text. A release that changes no meaning
    changes no model.

    Args:
        stored: what an environment runs.
        loaded: what the files declare now.
        resourced: models that read a source which is declared otherwise in what they read of it.
    """
    changed: set[str] = set()
    for name in loaded.order:
        old, new = stored.models.get(name), loaded.models[name]
        if old is None:
            continue
        moved = any(
            up.name in changed or (up.name in stored.models) != (up.name in loaded.models)
            for up in new.reads
        )
        if moved or name in resourced or changed_logic(old, new):
            changed.add(name)
    return frozenset(changed)


def edited(old: Model, new: Model) -> bool:
    """Whether two declarations of a model differ, in what computes the rows or in words; what it reads aside."""
    return changed_logic(old, new) or dumps(_described(old)) != dumps(_described(new))


def changed_logic(old: Model, new: Model) -> bool:
    """Whether two declarations of a model compute rows otherwise, by today's rule."""
    if old == new:
        return False
    before, after = _texts_now(old.logic, new.logic)
    return _decides(old, before) != _decides(new, after)


def _texts_now(before: Query, after: Query) -> tuple[str, str]:
    """Write two queries so that their texts are equal only if their rows are."""
    if isinstance(before, SqlQuery) or isinstance(after, SqlQuery):
        return _text(before), _text(after)
    return "", "changed" if changed_code(before, after) else ""


def _text(query: Query) -> str:
    return settled_text(query.sql) if isinstance(query, SqlQuery) else query.identity()


def _logic(model: Model) -> str:
    """Hash the parts that decide the rows; hash a bundle as it was stored, so that ids stay."""
    query = model.logic
    return _decides(model, query.bundle if isinstance(query, FunctionQuery) else _text(query))


def _decides(model: Model, text: str) -> str:
    """Hash the parts that decide the rows: query, kind, grid, key, columns, reads and delete policy."""
    return _hash(
        text,
        dumps(model.kind),
        dumps((model.cadence.unit, model.cadence.tz)),
        dumps(model.key),
        dumps(tuple((column.name, column.dtype) for column in model.schema)),
        dumps(tuple(sorted((up.name, dumps(up.lookback)) for up in model.reads))),
        dumps(model.delete_policy),
        dumps(model.time_column),
        dumps(model.audit_columns),
    )


def _described(model: Model) -> Model:
    """Give what the metadata hash covers: no query, and of functions that audit the code that decides."""
    audits = tuple(
        replace(audit, query=FunctionQuery(audit.query.name, audit.query.identity()))
        if isinstance(audit, PythonAudit)
        else audit
        for audit in model.audits
    )
    return replace(model, query=_nothing(model), audits=audits)


def _nothing(model: Model) -> FunctionQuery:
    """Replace the query in the metadata hash, which covers only descriptions."""
    is_sql = isinstance(model.logic, SqlQuery)
    return FunctionQuery(name="SqlQuery" if is_sql else "FunctionQuery", bundle="")


def _hash(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
