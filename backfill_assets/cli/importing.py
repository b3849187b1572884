"""Import the catalog, in a process of its own, and write what it declares on stdout.

The process that asked keeps neither pandera nor Spark in memory, and sees the files as they are
now: modules that it may have imported itself would be those of its own start.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path

from backfill_assets.cli.manifest import CatalogError, Manifest, failure_text
from backfill_assets.cli.watched import Watching
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.graph import build_graph
from backfill_assets.snapshots.loaded import Loaded, loaded


def main() -> None:
    """Write the manifest of the catalog that the command line names, or why there is none."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt is told by who asked
    with redirect_stdout(sys.stderr):  # what a catalog prints is not the manifest
        said, code = _told(sys.argv[1])
    sys.stdout.write(said)
    sys.stdout.flush()
    os._exit(code)  # Spark's and pandas' farewells are nothing to wait for


def _told(catalog: str) -> tuple[str, int]:
    watching = Watching()
    try:
        with watching.on():
            declared = import_catalog(catalog)
    except BackfillAssetsError as error:
        return failure_text(error), 1
    watched = watching.watched()
    return Manifest(watched, watched.state(), declared).text(), 0


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
