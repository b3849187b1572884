"""A data folder that was copied or moved together with its state: it works where it stands.

The state names tables by absolute paths. Where its own file lies beside the folder of tables, and
those are not the ones that it names, the folder has moved; then every path below the old one is
written anew. URIs, and whatever lies outside, stay as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from backfill_assets.models.codec import dumps
from backfill_assets.state.tables import BATCHES, OBSERVED_SOURCES, VERSIONS

if TYPE_CHECKING:
    from backfill_assets.state.database import Database

_DEPTH = 3
"""A table lies in the data folder as ``tables/<subject>/<version>``."""


def follow_folder(database: Database) -> None:
    """Let a state name the tables beside its own file, where it has moved with them."""
    file = Path(database.where)
    if not file.is_file():
        return
    here = file.resolve().parent
    left = database.read(lambda found: _left(found, here))
    if left:
        database.write(lambda found: _follow(found, left, here))


def _left(connection: sa.Connection, here: Path) -> set[str]:
    """Name the folders in which tables lay that are found here by now."""
    paths = connection.execute(sa.select(VERSIONS.c.path)).scalars()
    local = (Path(one) for one in paths if "://" not in one)
    return {
        str(one.parents[_DEPTH - 1])
        for one in local
        if len(one.parts) > _DEPTH
        and one.parents[_DEPTH - 1] != here
        and here.joinpath(*one.parts[-_DEPTH:]).is_dir()
    }


def _follow(connection: sa.Connection, left: set[str], here: Path) -> None:
    for old in sorted(left):
        for table in (VERSIONS, OBSERVED_SOURCES):
            below = table.c.path.startswith(f"{old}/", autoescape=True)
            rest = sa.func.substr(table.c.path, len(old) + 1)
            moved = sa.update(table).where(below)
            connection.execute(moved.values(path=sa.literal(str(here)).concat(rest)))
        # Pins name paths too, inside JSON text.
        before, after = (dumps(f"{one}/")[:-1] for one in (old, str(here)))
        pins = sa.type_coerce(BATCHES.c.inputs, sa.Text)
        renamed = sa.update(BATCHES).where(pins.contains(before, autoescape=True))
        connection.execute(renamed.values(inputs=sa.func.replace(pins, before, after)))
