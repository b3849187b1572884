"""A model: the declaration of one table, from which its asset, plan and evidence follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.cadence import Cadence
from backfill_assets.models.audit import Audit, PythonAudit, Unique
from backfill_assets.models.automation import Automation
from backfill_assets.models.codec import ADDED_LATER
from backfill_assets.models.column import Column, SchemaModel, columns_of
from backfill_assets.models.declared_values import require_values, settle_lists, settle_words
from backfill_assets.models.key_ranges import KeyRanges
from backfill_assets.models.kind import (
    AbsentMeansDeleted,
    Deletes,
    Full,
    IncrementalByUniqueKey,
    Kind,
    deletes_of,
)
from backfill_assets.models.model_rules import (
    GRAIN_AUDIT,
    require_consistency,
    require_declarations,
)
from backfill_assets.models.names import check_name
from backfill_assets.models.python.function_query import FunctionQuery, ModuleQuery, function_query
from backfill_assets.models.source import TimeColumns
from backfill_assets.models.spark_tuning import spark_tuning
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Query: TypeAlias = SqlQuery | ModuleQuery | FunctionQuery
"""What computes a model's rows, in a form that can be stored and run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One table, and how each of its cells is computed.

    Attributes:
        name: two-part, ``subject.table``.
        query: `SqlQuery`, or a function ``(inputs, interval) -> DataFrame``; with `function_query` one that
            reads files.
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
        deletes: what a key that its source no longer has means (merge kinds): ``"none"``, ``"absent"``,
            `SoftDelete` or `Tombstone`.
        batch_size: cells per batch; None lets the bytes that its inputs hold decide
            (`planning.batch_size`).
        batch_concurrency: how many batches of the model at once.
        batch_timeout: how many seconds a batch may take until its commit; None for what the settings
            say.
        audit_columns: whether rows carry who wrote them and when (`AUDIT_COLUMNS`).
        volatile: the query may give another answer tomorrow on the same input.
        forward_only: a change of it counts from now on and computes no history, unless a plan's
            request says another category.
        automation: whether the sensor fills its missing cells (``"on"``), only reports them
            (``"report"``), or neither (``"off"``).
        spark: Spark settings of its batches, by name; see `TUNABLE`.
        spark_off_peak: the same for off-peak hours, over those.
        key_ranges: by which ranges of its key the batch of a `Full` model is computed; None for all rows at once.
    """

    name: str
    query: Query | Callable[..., object]
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
    batch_timeout: float | None = None
    audit_columns: bool = False
    volatile: bool = False
    automation: Automation | str = Automation.ON
    spark: Mapping[str, str | int | float] = field(default_factory=dict[str, "str | int | float"])
    spark_off_peak: Mapping[str, str | int | float] = field(
        default_factory=dict[str, "str | int | float"]
    )
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    description: str = ""
    forward_only: bool = field(default=False, metadata=ADDED_LATER)
    key_ranges: KeyRanges | None = field(default=None, metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        check_name(self.name)
        require_values(f"model '{self.name}'", self, _VALUES)
        settle_lists(f"model '{self.name}'", self, _LISTS)
        settle_words(f"model '{self.name}'", self, {"automation": Automation})
        require_declarations(self)
        _settle(self)
        require_consistency(self)

    @property
    def reads(self) -> tuple[Upstream, ...]:
        """The upstreams of the model, each as an `Upstream`."""
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
    def logic(self) -> Query:
        """The query in a form that can be stored and run again."""
        return cast("Query", self.query)

    @property
    def functions(self) -> tuple[ModuleQuery | FunctionQuery, ...]:
        """Every Python function that it is made of: its query's, and those of its audits."""
        own = () if isinstance(self.logic, SqlQuery) else (self.logic,)
        return (*own, *(audit.query for audit in self.audits if isinstance(audit, PythonAudit)))

    @property
    def delete_policy(self) -> Deletes:
        """The meaning of a key that its source no longer has."""
        return cast("Deletes", self.deletes)

    @property
    def automated(self) -> Automation:
        """What the sensor does about its missing cells."""
        return cast("Automation", self.automation)

    @property
    def spark_settings(self) -> Mapping[str, str]:
        """The Spark settings of its batches."""
        return cast("Mapping[str, str]", self.spark)

    @property
    def off_peak_settings(self) -> Mapping[str, str]:
        """Those that win over them in off-peak hours."""
        return cast("Mapping[str, str]", self.spark_off_peak)

    @property
    def time_column(self) -> str | None:
        """The column that names the cell of a row; None for a `Full` model."""
        return None if isinstance(self.kind, Full) else self.kind.time_column

    @property
    def shown(self) -> frozenset[str]:
        """The columns whose values a sample of failing rows shows: of key and time, and those that say so."""
        default = {*self.key, self.time_column}
        return frozenset(
            column.name
            for column in self.schema
            if column.shown or (column.shown is None and column.name in default)
        )

    @property
    def hidden(self) -> frozenset[str]:
        """The columns whose values no sample shows, of comparisons neither."""
        return frozenset(column.name for column in self.schema if column.shown is False)

    @property
    def keeps_rows(self) -> bool:
        """Whether rows stay after their source has lost them."""
        merged = isinstance(self.kind, IncrementalByUniqueKey)
        return merged and not isinstance(self.delete_policy, AbsentMeansDeleted)

    @property
    def moves_rows(self) -> bool:
        """Whether a batch may take rows out of other cells than its own."""
        return isinstance(self.kind, IncrementalByUniqueKey) and self.kind.rows_move

    @property
    def in_order(self) -> bool:
        """Whether a cell reads earlier cells of the same model, so that batches run in order."""
        return any(upstream.name == self.name for upstream in self.reads)

    @property
    def all_audits(self) -> tuple[Audit, ...]:
        """Every audit: uniqueness at the grain first, then the declared ones."""
        return (Unique(GRAIN_AUDIT, self.key), *self.audits)


_VALUES = {
    "kind": (Kind, "IncrementalByTimeRange(...), IncrementalByUniqueKey(...) or Full()"),
    "cadence": (Cadence, "a grid, such as Daily(start='2024-01-01')"),
    "grain": (str, "words"),
    "owner": (str, "'team:name' or an e-mail address"),
    "times": (TimeColumns, "TimeColumns(...)"),
    "deletes": (Deletes | str, "'none', 'absent', SoftDelete(column) or Tombstone(column)"),
    "late_window": (int, "a number of cells"),
    "batch_size": (int | None, "a number of cells, or None"),
    "batch_concurrency": (int, "a number of batches"),
    "batch_timeout": (float | int | None, "a number of seconds, or None"),
    "key_ranges": (KeyRanges | None, "KeyRanges(column, starts), or None"),
    "tags": (Mapping, "texts by name"),
    "spark": (Mapping, "settings by name"),
    "spark_off_peak": (Mapping, "settings by name"),
    "description": (str, "words"),
}
_LISTS = {
    "upstreams": (str | Upstream, "names, or Upstream(...)"),
    "unique_key": (str, "names of columns"),
    "audits": (Audit, "audits, such as not_null('id')"),
}


def _settle(model: Model) -> None:
    """Bring the short forms that authors may write into the one form that is kept."""
    query = model.query
    if isinstance(query, str):
        raise DeclarationError(
            found=f"model '{model.name}': found a plain text as query",
            expected="SqlQuery(...) or sql_file(...)",
        )
    if not isinstance(query, (SqlQuery, ModuleQuery, FunctionQuery)):
        query = function_query(query)
    settled = {
        "query": query,
        "upstreams": tuple(
            Upstream(upstream) if isinstance(upstream, str) else upstream
            for upstream in model.upstreams
        ),
        "columns": columns_of(model.columns),
        "deletes": deletes_of(model.deletes),
        "spark": spark_tuning(f"model '{model.name}'", model.spark),
        "spark_off_peak": spark_tuning(f"model '{model.name}'", model.spark_off_peak),
    }
    for name, value in settled.items():
        object.__setattr__(model, name, value)
