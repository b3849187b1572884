"""The columns that a model's table stores, and how an existing table differs from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.models.column import AUDIT_COLUMNS
from backfill_assets.warehouse.files.tables import same_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.models.model import Model

AUDIT_TYPES = dict(
    zip(AUDIT_COLUMNS, ("string", "string", "string", "timestamp", "timestamp"), strict=True)
)


@dataclass(frozen=True, slots=True)
class ColumnChanges:
    """How the columns that a model declares differ from those of a table that is there.

    Attributes:
        added: declared and not there, with their types.
        retyped: there with another type, as ``name found (declared dtype)``.
    """

    added: Mapping[str, str]
    retyped: tuple[str, ...]

    def refuse_retyped(self, model: str, path: str) -> None:
        """Refuse a table in which a column has another type.

        Raises:
            RequestError: a column has another type.
        """
        if self.retyped:
            raise RequestError(
                found=f"'{model}' can't go on in its table at {path}: it changes the type of "
                f"{', '.join(self.retyped)}. A table that history was written to only gains columns",
                do="Keep the column, or plan the change as breaking, which gives it a table of its own",
            )


def stored_columns(model: Model) -> dict[str, str]:
    """Name every column of a model's table with its type: declared, audit, and `_cell` apart."""
    declared = {column.name: column.dtype for column in model.schema}
    return declared | AUDIT_TYPES if model.audit_columns else declared


def column_changes(model: Model, there: Mapping[str, str]) -> ColumnChanges:
    """Compare a model's stored columns with a table's, as `delta_schema` or Spark gives them."""
    columns = stored_columns(model)
    return ColumnChanges(
        added={name: dtype for name, dtype in columns.items() if name not in there},
        retyped=tuple(
            f"{name} {there[name]} (declared {dtype})"
            for name, dtype in columns.items()
            if name in there and not same_type(there[name], dtype)
        ),
    )
