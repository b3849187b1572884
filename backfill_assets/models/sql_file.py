"""Read a model's SQL from a file in the folder of the Python file that declares it."""

from __future__ import annotations

from inspect import currentframe
from pathlib import Path

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.query import SqlQuery


class MissingSqlFileError(BackfillAssetsError):
    """A model names a SQL file that does not lie beside it."""

    def __init__(self, *, name: str, beside: str) -> None:
        self.name, self.beside = name, beside
        super().__init__(
            f"there is no SQL file '{name}' beside {beside}; put it there or correct the name"
        )


def sql_file(name: str) -> SqlQuery:
    """Read ``name`` from the folder of the calling file.

    Raises:
        MissingSqlFileError: it is not there.
    """
    here = currentframe()
    caller = here.f_back if here else None
    beside = Path(caller.f_globals["__file__"] if caller else name)
    try:
        return SqlQuery((beside.parent / name).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise MissingSqlFileError(name=name, beside=beside.name) from error
