"""What a file of views says, whatever the dialect: a name for every model that an environment publishes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from sqlglot import exp

from backfill_assets.models.column import CELL_COLUMN
from backfill_assets.snapshots.environment import PROD
from backfill_assets.warehouse.files.cells import cell_type
from backfill_assets.warehouse.files.stored_columns import stored_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from backfill_assets.models.model import Model
    from backfill_assets.warehouse.files.tables import Table

_ELSEWHERE = {
    exp.DataType.Type.DECIMAL: "decimal(10,0)",
    exp.DataType.Type.TIMESTAMPLTZ: "timestamp",
}
"""Names of types, without digits, that mean another type in other dialects, or none, and what they mean to Spark."""


class ViewName(NamedTuple):
    """The name of a view.

    Attributes:
        schema: the subject; of another environment than prod, with its name.
        table: the model's own name.
    """

    schema: str
    table: str

    def sql(self, dialect: str) -> str:
        """Write it quoted."""
        return f"{identifier(self.schema, dialect)}.{identifier(self.table, dialect)}"


def view_name(environment: str, model: str) -> ViewName:
    """Name the view of a model: ``marketing.roi_analysis``, or ``marketing__dev.roi_analysis``."""
    subject, _, table = model.partition(".")
    return ViewName(subject if environment == PROD else f"{subject}__{environment}", table)


@dataclass(frozen=True, slots=True)
class PublishedView:
    """A model as a view shows it.

    Attributes:
        name: of the view.
        model: as its snapshot declares it.
        definition: the same as text, by which two are compared.
        table: what is read.
        versions: the names of the tables that this consists of, by path.
    """

    name: ViewName
    model: Model = field(compare=False)
    definition: str
    table: Table
    versions: Mapping[str, str]

    @property
    def columns(self) -> dict[str, str]:
        """The view's columns with their Spark types, in order."""
        return stored_columns(self.model)

    @property
    def typed_columns(self) -> dict[str, str]:
        """The same, and `_cell`."""
        return {**self.columns, CELL_COLUMN: cell_type(self.model.cadence)}


@dataclass(frozen=True, slots=True)
class PublishedViews:
    """All views of an environment, as of one moment.

    Attributes:
        environment: its name.
        number: the state's counter then; it does not tell two of them apart that show the same.
        views: one per model that is published.
        gone: views of models that were published once and are not any more.
    """

    environment: str
    number: int = field(compare=False)
    views: tuple[PublishedView, ...]
    gone: tuple[ViewName, ...]

    @property
    def heading(self) -> str:
        """A comment of one line that says what the file is."""
        return (
            f"-- Views of environment {self.environment!r} at number {self.number} of its state. "
            "`backfill views` writes this file whole: edits are lost."
        )

    def schema_statements(self, dialect: str) -> Iterator[str]:
        """Write the statements that make the schemas that the views lie in."""
        for schema in sorted({view.name.schema for view in self.views}):
            yield f"CREATE SCHEMA IF NOT EXISTS {identifier(schema, dialect)}"

    def view_statements(
        self, dialect: str, selects: Callable[[PublishedView], Sequence[str]]
    ) -> Iterator[str]:
        """Write the statements that drop and make views, each of a query per table that it reads."""
        for name in self.gone:
            yield f"DROP VIEW IF EXISTS {name.sql(dialect)}"
        for view in self.views:
            query = "\nUNION ALL\n".join(selects(view)) or nothing_of(view.columns, dialect)
            yield f"CREATE OR REPLACE VIEW {view.name.sql(dialect)} AS\n{query}"


def identifier(name: str, dialect: str) -> str:
    """Quote a name."""
    return exp.to_identifier(name, quoted=True).sql(dialect)


def literal(text: str, dialect: str) -> str:
    """Write a text as a literal."""
    return exp.Literal.string(text).sql(dialect)


def null_of(dtype: str, dialect: str) -> str:
    """Write a NULL of a Spark type."""
    return exp.cast(exp.null(), _type(dtype)).sql(dialect)


def _type(dtype: str) -> exp.DataType:
    """Read a Spark type as every dialect takes it, without what may stand beside the type of a field."""
    read = exp.DataType.build(dtype, dialect="spark")
    for member in read.find_all(exp.ColumnDef):
        member.set("constraints", None)
    for part in read.find_all(exp.DataType):
        if part.this in _ELSEWHERE and not part.expressions:
            part.args |= exp.DataType.build(_ELSEWHERE[part.this], dialect="spark").args
    return read


def nothing_of(columns: Mapping[str, str], dialect: str) -> str:
    """Write a query that gives no row, with these columns of Spark types."""
    nulls = (
        f"{null_of(dtype, dialect)} AS {identifier(name, dialect)}"
        for name, dtype in columns.items()
    )
    return f"SELECT {', '.join(nulls)} WHERE FALSE"
