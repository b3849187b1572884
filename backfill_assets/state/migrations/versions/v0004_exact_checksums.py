"""Checksums that were made of rounded floats are marked: they equal no checksum of another batch."""

from __future__ import annotations

import json
import re
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_RECORDS = sa.table(
    "ready_records",
    sa.column("version", sa.Text()),
    sa.column("starts", sa.BigInteger()),
    sa.column("valid_from", sa.BigInteger()),
    sa.column("fingerprint", sa.Text()),
    sa.column("batch_id", sa.Text()),
    sa.column("content", sa.Text()),
)
_SNAPSHOTS = sa.table(
    "snapshots", sa.column("fingerprint", sa.Text()), sa.column("definition", sa.Text())
)
_KEY = ("version", "starts", "valid_from")
_ONCE_ROUNDED = re.compile(r"\b(float|real|double|variant)\b", re.IGNORECASE)


def upgrade() -> None:
    """Mark the checksums of columns that hold floats, by the model that built each cell."""
    connection = op.get_bind()
    known = {
        row.fingerprint: _rounded(row.definition)
        for row in connection.execute(sa.select(_SNAPSHOTS))
    }
    built = sa.select(_RECORDS.c.fingerprint).distinct()
    for fingerprint in connection.execute(built).scalars().all():
        columns, key = known.get(fingerprint, (None, True))
        if columns is None or columns:
            _mark(connection, fingerprint, columns, key=key)


def _mark(
    connection: sa.Connection, fingerprint: str, columns: frozenset[str] | None, *, key: bool
) -> None:
    mine = sa.select(_RECORDS).where(_RECORDS.c.fingerprint == fingerprint)
    marked = sa.update(_RECORDS).where(
        *(_RECORDS.c[name] == sa.bindparam(f"_{name}") for name in _KEY)
    )
    rows = [
        {
            **{f"_{name}": getattr(row, name) for name in _KEY},
            "_content": _marked(row.content, row.batch_id, columns, key=key),
        }
        for row in connection.execute(mine).all()
    ]
    content: sa.BindParameter[str] = sa.bindparam("_content")
    if rows:
        connection.execute(marked.values(content=content), rows)


def _rounded(definition: str) -> tuple[frozenset[str] | None, bool]:
    """Read from a stored model which columns were rounded (None: not known), and whether the key was."""
    try:
        model = json.loads(definition)["v"]
        types = {column["v"]["name"]: column["v"]["dtype"] for column in model["columns"]}
        key = tuple(model["unique_key"])
    except (KeyError, TypeError, ValueError):
        return None, True
    rounded = frozenset(name for name, dtype in types.items() if _ONCE_ROUNDED.search(dtype))
    # A value was hashed with its row's key, so a rounded key spoiled all of them.
    return (frozenset(types), True) if rounded & frozenset(key) else (rounded, False)


def _marked(text: str, batch_id: str, columns: frozenset[str] | None, *, key: bool) -> str:
    stored: dict[str, Any] = json.loads(text)
    held = stored["v"]
    sums = held["columns"]["v"]
    if key:
        held["key"] = _named(held["key"], batch_id)
    for name in sums:
        if columns is None or name in columns:
            sums[name] = _named(sums[name], batch_id)
    return json.dumps(stored, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _named(checksum: object, batch_id: str) -> object:
    return f"rounded:{checksum}:{batch_id}" if isinstance(checksum, int) else checksum
