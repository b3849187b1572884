"""Packages as an author writes them: on disk, imported, taken as a query, and gone again."""

from __future__ import annotations

import importlib
import shutil
import sys
from typing import TYPE_CHECKING, Any

from backfill_assets.models.python.function_query import ModuleQuery, function_query

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def query_of(
    folder: Path,
    files: Mapping[str, str],
    function: str = "shop.visits:visits",
    reads_files: Iterable[str] = (),
) -> ModuleQuery:
    """Write files, import a function from them, take it as a query, and delete them."""
    module, _, name = function.partition(":")
    for path, text in files.items():
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
    before = {*sys.modules}
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        function_ = getattr(importlib.import_module(module), name)
        return function_query(function_, reads_files=reads_files)
    finally:
        sys.path.remove(str(folder))
        tops = {path.partition("/")[0].removesuffix(".py") for path in files}
        for imported in {*sys.modules} - before:
            if imported.partition(".")[0] in tops:
                del sys.modules[imported]
        shutil.rmtree(folder)
        importlib.invalidate_caches()


def ran(query: ModuleQuery) -> Any:  # noqa: ANN401 - whatever the function gives
    """Run a query's function on nothing."""
    return query.load()({}, None)
