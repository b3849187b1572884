"""Where tables lie below the data root is kept relative to it: a copied or moved folder is whole.

The old data root is read from the tables' own paths, ``<root>/tables/<subject>/<version>``. It is the
data root of today, or a folder whose tables are found below the data root of today, to which they
were copied or moved. Tables below any other folder lie elsewhere, and keep their paths.
"""

from __future__ import annotations

import json
from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

_VERSIONS = sa.table(
    "versions",
    sa.column("version", sa.Text()),
    sa.column("model", sa.Text()),
    sa.column("path", sa.Text()),
)
_SOURCES = sa.table("observed_sources", sa.column("path", sa.Text()))
_BATCHES = sa.table("batches", sa.column("inputs", sa.Text()))


def upgrade() -> None:
    """Make every path below the data root relative to it."""
    context = op.get_context()
    settings = None if context.config is None else context.config.attributes
    data_root = None if settings is None else settings.get("data_root")
    if data_root is not None:
        connection = op.get_bind()
        for root in sorted({data_root, *_left(connection, data_root)}):
            _make_relative(connection, f"{root}/")


def _left(connection: sa.Connection, data_root: str) -> set[str]:
    """Name the former roots of tables that lie below the data root by now.

    Raises:
        LookupError: an object store may have been copied, which is not seen from here.
    """
    roots: dict[str, list[str]] = {}
    for row in connection.execute(sa.select(_VERSIONS)):
        place = f"tables/{row.model.partition('.')[0]}/{row.version}"
        root = row.path.removesuffix(f"/{place}")
        if root != row.path:
            roots.setdefault(root, []).append(place)
    if not roots or data_root in roots:
        return set()
    if "://" in data_root:
        raise LookupError(", ".join(sorted(roots)))
    return {
        root
        for root, places in roots.items()
        if any(Path(data_root, place).is_dir() for place in places)
    }


def _make_relative(connection: sa.Connection, below: str) -> None:
    for table in (_VERSIONS, _SOURCES):
        rest = sa.func.substr(table.c.path, len(below) + 1)
        lies_below = (
            sa.func.substr(table.c.path, 1, len(below)) == below
        )  # LIKE folds case in SQLite
        connection.execute(sa.update(table).where(lies_below).values(path=rest))
    # Pins name paths too, inside JSON text.
    before, after = f'"path":{json.dumps(below, ensure_ascii=False)[:-1]}', '"path":"'
    pins = _BATCHES.c.inputs
    connection.execute(sa.update(_BATCHES).values(inputs=sa.func.replace(pins, before, after)))
