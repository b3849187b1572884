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

import backfill_assets
from backfill_assets.cli.manifest import CatalogError, Manifest, failure_text
from backfill_assets.cli.origin import origin_of
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.models.graph import build_graph
from backfill_assets.models.python.own_modules import INSTALLED, is_of_the_project
from backfill_assets.snapshots.loaded import Loaded

_PACKAGE = Path(backfill_assets.__file__).parent

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.machinery import ModuleSpec


def main() -> None:
    """Write the manifest of the catalog that the command line names, or the reason for its absence."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the calling process reports an interrupt
    gc.disable()  # what is imported lives as long as this process
    with redirect_stdout(sys.stderr):  # what a catalog prints is not the manifest
        output, code = _told(sys.argv[1])
    sys.stdout.write(output)
    sys.stdout.flush()
    os._exit(code)  # without waiting for the exit handlers of Spark and pandas


def _told(catalog: str) -> tuple[str, int]:
    sys.meta_path.insert(0, _ProjectFinder())
    try:
        declared = import_catalog(catalog)
    except BackfillAssetsError as error:
        return failure_text(error, _place(error)), 1
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
        raise _unusable(catalog, error) from error
    lacking = [name for name in ("MODELS", "SOURCES") if not hasattr(module, name)]
    if lacking:
        raise CatalogError(catalog, f"has no {' and no '.join(lacking)}", _NAME_IT)
    consumers = getattr(module, "CONSUMERS", ())
    return Loaded.of(build_graph(module.MODELS, module.SOURCES, consumers))


_NO_SESSION = "SESSION_OR_CONTEXT_NOT_EXISTS"
_WITHOUT_SPARK = (
    "a catalog is loaded without Spark: start none there, but give the type of a udf as an object, such as "
    "StringType(), and make columns such as F.col('x') inside of functions"
)
_NAME_IT = "name a module with MODELS and SOURCES in BACKFILL_CATALOG, such as shop.catalog"


def _unusable(catalog: str, error: Exception) -> CatalogError:
    """Say what an import stumbled over, at which line of the project, and what to do about it."""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    place = _place(error)
    problem = (
        f"{f'{place}: ' if place else ''}{type(error).__name__}{f': {message}' if message else ''}"
    )
    if _lacks_session(error):
        return CatalogError(catalog, problem, _WITHOUT_SPARK)
    return CatalogError(catalog, problem, "correct it there" if place else _NAME_IT)


def _lacks_session(error: Exception) -> bool:
    """Whether PySpark has no session: it says so, or fails an assertion without a word."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    is_bare = isinstance(error, AssertionError) and not str(error)
    return (is_bare or _NO_SESSION in str(error)) and "pyspark" in Path(last.filename).parts


def _place(error: Exception) -> str:
    """Name the last line of the project's own files that an error has come through; empty for none.

    Of a catalog that is installed it is the last line of installed ones.
    """
    passed = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        passed.append((error.filename, error.lineno))
    declaring = [(file, line) for file, line in passed if _is_declaring(file)]
    own = [(file, line) for file, line in declaring if is_of_the_project(file)]
    if not declaring:
        return ""
    file, line = (own or declaring)[-1]
    here = Path.cwd()
    path = Path(file)
    return f"{path.relative_to(here) if path.is_relative_to(here) else path}:{line}"


def _is_declaring(file: str) -> bool:
    """Whether a file may hold declarations: it is the project's, or installed, and not of the code that reads them."""
    path = Path(file)
    reads = path.is_relative_to(_PACKAGE) and not path.is_relative_to(_PACKAGE / "pipelines")
    is_python_s_own = not is_of_the_project(file) and not INSTALLED & {*path.parts}
    return path.is_file() and not is_python_s_own and not reads


if __name__ == "__main__":
    main()
