"""Texts of modules and files are kept once, by their SHA-256; snapshots name them."""

from __future__ import annotations

import hashlib
import json
from typing import Any, cast

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

_SNAPSHOTS = sa.table(
    "snapshots", sa.column("fingerprint", sa.Text()), sa.column("definition", sa.Text())
)
_HELD_IN = {"StoredModule": "source", "StoredFile": "content"}


def upgrade() -> None:
    """Take the texts out of every stored definition."""
    texts = op.create_table(
        "texts",
        sa.Column("sha256", sa.Text(), primary_key=True, nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
    )
    connection = op.get_bind()
    held: dict[str, str] = {}
    for row in connection.execute(sa.select(_SNAPSHOTS)).all():
        definition = _named(row.definition, held)
        if definition != row.definition:
            mine = sa.update(_SNAPSHOTS).where(_SNAPSHOTS.c.fingerprint == row.fingerprint)
            connection.execute(mine.values(definition=definition))
    if held:
        rows = [{"sha256": sha256, "text": text} for sha256, text in held.items()]
        connection.execute(sa.insert(texts), rows)


def _named(definition: str, held: dict[str, str]) -> str:
    """Write a definition that names its texts; unchanged where it would not come back letter by letter."""
    if not any(f'"@":"{kind}"' in definition for kind in _HELD_IN):
        return definition
    texts: dict[str, str] = {}

    def name(value: dict[str, Any]) -> dict[str, Any]:
        field: str = _HELD_IN.get(str(value.get("@")), "")
        held_in: object = value.get("v")
        inner = cast("dict[str, Any]", held_in) if isinstance(held_in, dict) else {}
        text: Any = inner.get(field)
        if not isinstance(text, str):
            return value
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        texts[sha256] = text
        return {**value, "v": {**inner, field: {"@": "text", "v": sha256}}}

    try:
        named = json.loads(definition, object_hook=name)
    except ValueError:
        return definition
    if _written(json.loads(definition)) != definition:
        return definition
    held.update(texts)
    return _written(named)


def _written(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
