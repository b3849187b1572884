"""How two declarations of a model differ, as unified text for people."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from difflib import unified_diff
from typing import TYPE_CHECKING

from backfill_assets.models.query import SqlQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from backfill_assets.models.model import Model

_APART = ("name", "query", "columns", "upstreams", "audits")


def declaration_diff(old: Model | None, new: Model) -> str:
    """Write the difference of two declarations; against nothing for an added model."""
    before = [] if old is None else list(_lines(old))
    return "\n".join(unified_diff(before, list(_lines(new)), "before", "after", lineterm="", n=2))


def _lines(model: Model) -> Iterator[str]:
    for one in fields(model):
        value = getattr(model, one.name)
        if one.name not in _APART and value not in (None, "", (), {}):
            yield f"{one.name}: {value}"
    yield from (f"reads: {upstream}" for upstream in model.reads)
    yield from (f"column: {column.name} {column.dtype}" for column in model.schema)
    yield from (f"audit: {audit}" for audit in model.audits)
    query = model.logic
    if isinstance(query, SqlQuery):
        yield from query.sql.strip("\n").splitlines()
    else:
        yield f"function: {query.name} ({_digest(query.bundle)})"


def _digest(bundle: str) -> str:
    return hashlib.sha256(bundle.encode()).hexdigest()[:12]
