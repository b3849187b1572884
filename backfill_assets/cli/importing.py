"""Import the catalog, in a process of its own, and write what it declares on stdout.

The process that asked keeps neither pandera nor Spark in memory, and sees the files as they are
now: modules that it may have imported itself would be those of its own start.
"""

from __future__ import annotations

import gc
import importlib
import os
import signal
import sys
import traceback
from contextlib import redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets.cli.manifest import CatalogError, Manifest, failure_text
from backfill_assets.cli.origin import origin_of
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.graph import build_graph
from backfill_assets.models.python.own_modules import is_of_the_project
from backfill_assets.snapshots.loaded import Loaded, loaded

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec


def main() -> None:
    """Write the manifest of the catalog that the command line names, or why there is none."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the calling process reports an interrupt
    gc.disable()  # what is imported lives as long as this process
    with redirect_stdout(sys.stderr):  # what a catalog prints is not the manifest
        said, code = _told(sys.argv[1])
    sys.stdout.write(said)
    sys.stdout.flush()
    os._exit(code)  # without waiting for the exit handlers of Spark and pandas


def _told(catalog: str) -> tuple[str, int]:
    sys.meta_path.insert(0, _ProjectFinder())
    try:
        declared = import_catalog(catalog)
    except BackfillAssetsError as error:
        return failure_text(error), 1
    return Manifest(origin_of(declared.graph), declared).text(), 0


class _Compiling(SourceFileLoader):
    """Compiles a module whenever it is imported: bytecode can't tell two edits within one second."""

    def path_stats(self, path: str) -> Mapping[str, object]:
        raise OSError(path)  # importlib then looks at no bytecode, and writes none


class _ProjectFinder:
    """Finds modules as Python does, and lets the project's own ones be compiled anew."""

    def find_spec(self, name: str, *where: Any) -> ModuleSpec | None:  # noqa: ANN401 - importlib's own
        others = (finder.find_spec(name, *where) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, others), None)
        loader = getattr(spec, "loader", None)
        if spec and type(loader) is SourceFileLoader and is_of_the_project(loader.path):
            spec.loader = _Compiling(loader.name, loader.path)
        return spec


def import_catalog(catalog: str) -> Loaded:
    """Import the catalog, from the current folder too, and check it.

    Raises:
        CatalogError: it can't be imported or lacks MODELS or SOURCES.
        BackfillAssetsError: a declaration in it is wrong.
    """
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(catalog)
    except BackfillAssetsError:
        raise
    except Exception as error:
        raise CatalogError(catalog, _where(error)) from error
    lacking = [name for name in ("MODELS", "SOURCES") if not hasattr(module, name)]
    if lacking:
        raise CatalogError(catalog, f"has no {' and no '.join(lacking)}")
    consumers = getattr(module, "CONSUMERS", ())
    return loaded(build_graph(module.MODELS, module.SOURCES, consumers))


def _where(error: Exception) -> str:
    """Say what an import stumbled over, and at which line of whose file."""
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, (ImportError, SyntaxError)):
        return said
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{said} ({last.filename}, line {last.lineno})"


if __name__ == "__main__":
    main()
