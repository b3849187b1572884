"""Read a model's SQL from a file that lies beside the Python file that declares it."""

from __future__ import annotations

import sys
from pathlib import Path

from backfill_assets.models.query import SqlQuery


def sql_file(name: str) -> SqlQuery:
    """Read ``name`` from the folder of the calling file."""
    caller = sys._getframe(1).f_globals["__file__"]  # noqa: SLF001 - the one way to know the caller
    return SqlQuery((Path(caller).parent / name).read_text(encoding="utf-8"))
