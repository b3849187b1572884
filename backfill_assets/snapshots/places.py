"""Places: locations of tables that stay valid when the data folder is copied or moved.

The state and the tables' logs store places: a path relative to the data root for a table below it,
else an absolute path or a URI. Only the store converts between places and paths.
"""

from __future__ import annotations

from backfill_assets.errors import RequestError


def place_of(path: str, data_root: str | None) -> str:
    """Give the place of a path: relative for a path below the data root."""
    if data_root is None:
        return path
    rest = path.removeprefix(f"{data_root}/")
    return path if rest == path or _is_absolute(rest) else rest


def located(place: str, data_root: str | None) -> str:
    """Give the path, or the URI, of a place.

    Raises:
        RequestError: it is relative, and there is no data root.
    """
    if _is_absolute(place):
        return place
    if data_root is None:
        raise RequestError(
            found=f"the state keeps a table at '{place}' below the data root, and was opened "
            "without one",
            do="give `data_root` to `Store.open`",
        )
    return f"{data_root}/{place}"


def is_same_place(place: str, logged: str) -> bool:
    """Whether a pin may be of the table at a place.

    Logs of earlier releases name absolute paths, below the data root of that time.
    """
    return logged == place or (not _is_absolute(place) and logged.endswith(f"/{place}"))


def _is_absolute(path: str) -> bool:
    return path.startswith("/") or "://" in path
