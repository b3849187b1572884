"""Texts of modules and files: kept once by their SHA-256, however many snapshots name them.

A snapshot's definition holds the texts of its modules and files. In its row each of them stands as
a name, ``{"@":"text","v":SHA-256}``; the definition that is read back is the one that was saved.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, cast

import sqlalchemy as sa

from backfill_assets.errors import RequestError
from backfill_assets.state.rows import insert_all
from backfill_assets.state.tables import SNAPSHOTS, TEXTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_HELD_IN = {"StoredModule": "source", "StoredFile": "content"}


def taken_apart(definition: str) -> tuple[str, dict[str, str]]:
    """Split a definition into one that names its texts, and the texts by SHA-256."""
    texts: dict[str, str] = {}

    def named(value: object) -> object:
        if not isinstance(value, str):
            return value
        sha256 = hashlib.sha256(value.encode()).hexdigest()
        texts[sha256] = value
        return {"@": "text", "v": sha256}

    named_definition = _replaced(definition, named)
    if _put_together(named_definition, texts) == definition:
        return named_definition, texts
    return definition, {}


def keep_texts(connection: sa.Connection, texts: Mapping[str, str]) -> None:
    """Keep texts that are not there yet."""
    stored_texts = _held(connection, texts)
    new = [
        {"sha256": sha256, "text": text}
        for sha256, text in texts.items()
        if sha256 not in stored_texts
    ]
    insert_all(connection, TEXTS, new)


def put_together(connection: sa.Connection, definition: str) -> str:
    """Give a definition with its texts, as it was saved.

    Raises:
        RequestError: the state lacks a text that it names.
    """
    names = _names_in(definition)
    return _put_together(definition, _held(connection, names)) if names else definition


def drop_unnamed(connection: sa.Connection) -> None:
    """Drop the texts that no snapshot names."""
    definitions = connection.execute(sa.select(SNAPSHOTS.c.definition)).scalars()
    named = {name for definition in definitions for name in _names_in(definition)}
    for sha256 in connection.execute(sa.select(TEXTS.c.sha256)).scalars().all():
        if sha256 not in named:
            connection.execute(sa.delete(TEXTS).where(TEXTS.c.sha256 == sha256))


def _held(connection: sa.Connection, names: Iterable[str]) -> dict[str, str]:
    query = sa.select(TEXTS.c.sha256, TEXTS.c.text).where(TEXTS.c.sha256.in_([*names]))
    return {row.sha256: row.text for row in connection.execute(query)}


def _put_together(definition: str, texts: Mapping[str, str]) -> str:
    def text(value: object) -> object:
        match value:
            case {"@": "text", "v": str(sha256)}:
                if sha256 not in texts:
                    raise RequestError(
                        found=f"the state holds no text with the SHA-256 {sha256}, which a "
                        "snapshot's module or file has: the database was changed by hand",
                        do="Restore the table `texts` from a backup",
                    )
                return texts[sha256]
            case _:
                return value

    return _replaced(definition, text)


def _names_in(definition: str) -> set[str]:
    names: set[str] = set()

    def name(value: object) -> object:
        match value:
            case {"@": "text", "v": str(sha256)}:
                names.add(sha256)
            case _:
                pass
        return value

    if '{"@":"text"' in definition:
        _replaced(definition, name)
    return names


def _replaced(definition: str, change: Callable[[object], object]) -> str:
    """Write a definition anew, as the codec writes it, with every text changed."""
    if not any(f'"@":"{kind}"' in definition for kind in _HELD_IN):
        return definition

    def changed(value: dict[str, Any]) -> dict[str, Any]:
        field = _HELD_IN.get(str(value.get("@")), "")
        held_in: object = value.get("v")
        inner = cast("dict[str, Any]", held_in) if isinstance(held_in, dict) else {}
        return {**value, "v": {**inner, field: change(inner[field])}} if field in inner else value

    read = json.loads(definition, object_hook=changed)
    return json.dumps(read, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
