"""A model: the declaration of one table, from which its asset, plan and evidence follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.intervals.grid import Unit
from backfill_assets.models.audit import Audit, Unique
from backfill_assets.models.column import Column, SchemaModel, columns_of
from backfill_assets.models.function_query import FunctionQuery, function_query
from backfill_assets.models.kind import (
    AbsentMeansDeleted,
    Deletes,
    Full,
    IncrementalByUniqueKey,
    Kind,
    SoftDelete,
    Tombstone,
    deletes_of,
)
from backfill_assets.models.names import check_name
from backfill_assets.models.query import SqlQuery
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from backfill_assets.intervals.cadence import Cadence

CELL_COLUMN = "_cell"
AUDIT_COLUMNS = ("_plan_id", "_batch_id", "_code_version", "_inserted_at", "_updated_at")


class IncompleteModelError(BackfillAssetsError):
    """A model lacks a declaration that history can't be kept right without."""

    def __init__(self, *, model: str, missing: str, why: str) -> None:
        self.model, self.missing = model, missing
        super().__init__(f"model '{model}' declares no {missing}: {why}")


class UnknownColumnError(BackfillAssetsError):
    """A declaration names a column that the model does not have."""

    def __init__(self, *, model: str, role: str, column: str, known: Sequence[str]) -> None:
        self.model, self.role, self.column = model, role, column
        super().__init__(
            f"model '{model}' names '{column}' as its {role}, but has the columns "
            f"{', '.join(known)}; declare the column or correct the name"
        )


class InvalidModelError(BackfillAssetsError):
    """Two declarations of a model contradict each other, or one is out of range."""

    def __init__(self, *, model: str, found: str, expected: str) -> None:
        self.model = model
        super().__init__(f"model '{model}': found {found}; expected {expected}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One table and how every cell of it comes to be.

    Attributes:
        name: two-part, ``subject.table``.
        query: `SqlQuery`, or a function ``(inputs, interval) -> DataFrame``.
        kind: how rows are kept.
        cadence: the grid that the model lives on, with its start, end and cron.
        upstreams: what it reads; a plain name is an `Upstream` without lookback.
        grain: in words, what one row is.
        unique_key: the columns that identify a row.
        columns: a ``pandera.pyspark.DataFrameModel``, or `Column` values.
        owner: who answers for it, ``team:name`` or an e-mail address.
        audits: tests of each batch beside those that columns and key already declare.
        times: which column carries which time; the cell's is taken from `kind`.
        late_window: how many of the last cells late source rows reopen without a plan.
        deletes: what a key that is gone means (merge kinds): ``"none"``, ``"absent"``,
            `SoftDelete` or `Tombstone`.
        batch_size: cells per batch; None means all consecutive ones together.
        batch_concurrency: how many batches of the model at once.
        audit_columns: whether rows carry who wrote them and when (`AUDIT_COLUMNS`).
        volatile: the query may give another answer tomorrow on the same input.
    """

    name: str
    query: SqlQuery | FunctionQuery | Callable[..., object]
    kind: Kind
    cadence: Cadence
    upstreams: Sequence[Upstream | str]
    grain: str
    unique_key: Sequence[str]
    columns: Sequence[Column] | type[SchemaModel]
    owner: str
    audits: Sequence[Audit] = ()
    times: TimeColumns = field(default_factory=TimeColumns)
    late_window: int = 0
    deletes: Deletes | str = field(default_factory=AbsentMeansDeleted)
    batch_size: int | None = None
    batch_concurrency: int = 1
    audit_columns: bool = False
    volatile: bool = False
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    description: str = ""

    def __post_init__(self) -> None:
        check_name(self.name)
        _require_declarations(self)
        _settle(self)
        _require_consistency(self)

    @property
    def reads(self) -> tuple[Upstream, ...]:
        """What the model reads, each as an `Upstream`."""
        return cast("tuple[Upstream, ...]", self.upstreams)

    @property
    def schema(self) -> tuple[Column, ...]:
        """The output columns in order."""
        return cast("tuple[Column, ...]", self.columns)

    @property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row."""
        return cast("tuple[str, ...]", self.unique_key)

    @property
    def logic(self) -> SqlQuery | FunctionQuery:
        """The query in a form that can be stored and run again."""
        return cast("SqlQuery | FunctionQuery", self.query)

    @property
    def delete_policy(self) -> Deletes:
        """What a key that is gone means."""
        return cast("Deletes", self.deletes)

    @property
    def time_column(self) -> str | None:
        """The column that names the cell of a row; None for a `Full` model."""
        return None if isinstance(self.kind, Full) else self.kind.time_column

    @property
    def in_order(self) -> bool:
        """Whether a cell reads earlier cells of the same model, so that batches run in order."""
        return any(upstream.name == self.name for upstream in self.reads)

    @property
    def all_audits(self) -> tuple[Audit, ...]:
        """Every audit: uniqueness at the grain first, then what is declared."""
        return (Unique("unique_grain", self.key), *self.audits)


def _require_declarations(model: Model) -> None:
    reasons = {
        "grain": (model.grain, "without it nobody can tell a duplicate from a second fact"),
        "unique_key": (model.unique_key, "without it reruns can't be told from duplicates"),
        "owner": (model.owner, "without one nobody can accept a changed history"),
        "columns": (model.columns, "without a schema a drifted input is published unnoticed"),
    }
    for missing, (value, why) in reasons.items():
        if not value:
            raise IncompleteModelError(model=model.name, missing=missing, why=why)


def _settle(model: Model) -> None:
    """Bring the short forms that authors may write into the one form that is kept."""
    query = model.query
    if not isinstance(query, (SqlQuery, FunctionQuery)):
        query = function_query(query)
    settled = {
        "query": query,
        "upstreams": tuple(
            Upstream(one) if isinstance(one, str) else one for one in model.upstreams
        ),
        "unique_key": tuple(model.unique_key),
        "columns": columns_of(model.columns),
        "audits": tuple(model.audits),
        "deletes": deletes_of(model.deletes),
    }
    for name, value in settled.items():
        object.__setattr__(model, name, value)


def _require_consistency(model: Model) -> None:
    known = [column.name for column in model.schema]
    for role, column in _named_columns(model):
        if column not in known:
            raise UnknownColumnError(model=model.name, role=role, column=column, known=known)
    if isinstance(model.kind, Full) != (model.cadence.unit is Unit.WHOLE):
        raise InvalidModelError(
            model=model.name,
            found=f"{type(model.kind).__name__} on the cadence {model.cadence.unit.name}",
            expected="Full models on Whole(), and only those",
        )
    if model.cadence.unit is not Unit.WHOLE and model.cadence.start is None:
        raise IncompleteModelError(
            model=model.name,
            missing="start",
            why="without one its history has no first cell; give its cadence a start",
        )
    for what, number, least in (
        ("batch_size", model.batch_size or 1, 1),
        ("batch_concurrency", model.batch_concurrency, 1),
        ("late_window", model.late_window, 0),
    ):
        if number < least:
            raise InvalidModelError(
                model=model.name, found=f"{what}={number}", expected=f"at least {least}"
            )


def _named_columns(model: Model) -> list[tuple[str, str]]:
    named = [("unique key", column) for column in model.key]
    if model.time_column is not None:
        named.append(("time column", model.time_column))
    if isinstance(model.kind, IncrementalByUniqueKey) and model.kind.latest_by is not None:
        named.append(("ordering column (latest_by)", model.kind.latest_by))
    if isinstance(model.delete_policy, (SoftDelete, Tombstone)):
        named.append(("delete marker", model.delete_policy.column))
    named += [
        (f"column of audit '{audit.name}'", column)
        for audit in model.audits
        for column in _audited(audit)
    ]
    return named


def _audited(audit: Audit) -> tuple[str, ...]:
    columns = getattr(audit, "columns", None)
    return columns or ((audit.column,) if hasattr(audit, "column") else ())
