"""Stored columns: what a model's table holds beside the declared columns, and of which types."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.models.model import AUDIT_COLUMNS

if TYPE_CHECKING:
    from backfill_assets.models.model import Model

AUDIT_TYPES = dict(
    zip(AUDIT_COLUMNS, ("string", "string", "string", "timestamp", "timestamp"), strict=True)
)


def stored_columns(model: Model) -> dict[str, str]:
    """Name every column of a model's table with its type: declared, audit, and `_cell` apart."""
    declared = {column.name: column.dtype for column in model.schema}
    return declared | AUDIT_TYPES if model.audit_columns else declared
