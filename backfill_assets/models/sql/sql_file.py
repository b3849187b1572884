"""Read a model's SQL from a file in the folder of the Python file that declares it."""

from __future__ import annotations

from inspect import currentframe
from pathlib import Path

from backfill_assets.errors import DeclarationError
from backfill_assets.models.sql.query import SqlQuery


def sql_file(name: str) -> SqlQuery:
    """Read ``name`` from the folder of the calling file.

    Raises:
        DeclarationError: it is not there.
    """
    here = currentframe()
    caller = here.f_back if here else None
    beside = Path(caller.f_globals["__file__"] if caller else name)
    try:
        return SqlQuery((beside.parent / name).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise DeclarationError(
            found=f"there is no SQL file '{name}' beside {beside.name}",
            do="put it there or correct the name",
        ) from error
