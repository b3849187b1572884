"""The columns that a model's table stores, and how the columns of a table differ from declared ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

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
    """How declared columns differ from those of a table, or of rows, that are there.

    Attributes:
        added: declared and not there, with their types.
        retyped: there with another type, as ``name found (declared dtype)``.
    """

    added: Mapping[str, str]
    retyped: tuple[str, ...]


def stored_columns(model: Model) -> dict[str, str]:
    """Name every column of a model's table with its type: declared, audit, and `_cell` apart."""
    declared = {column.name: column.dtype for column in model.schema}
    return declared | AUDIT_TYPES if model.audit_columns else declared


def column_changes(declared: Mapping[str, str], there: Mapping[str, str]) -> ColumnChanges:
    """Compare declared columns with those of a table, as `delta_schema` or Spark gives them."""
    return ColumnChanges(
        added={name: dtype for name, dtype in declared.items() if name not in there},
        retyped=tuple(
            f"{name} {there[name]} (declared {dtype})"
            for name, dtype in declared.items()
            if name in there and not same_type(there[name], dtype)
        ),
    )
