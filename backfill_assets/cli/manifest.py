"""The manifest: what the catalog declares, kept beside what it was read from.

As long as all of that is as it was, the catalog is not imported: importing it means importing
pandera and Spark, for seconds. When anything changed, all of it is imported again. What a catalog
takes from elsewhere (other folders, the clock, a network) is not seen: it has to be a function of
its packages, of what is installed, and of the variables that it names.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from backfill_assets.cli.origin import Origin
from backfill_assets.errors import BackfillAssetsError, DeclarationError
from backfill_assets.models.codec import dumps, restored
from backfill_assets.models.consumer import CONSUMED
from backfill_assets.models.fingerprint import Fingerprint
from backfill_assets.models.graph import Graph
from backfill_assets.models.source import Source, WhenEmpty
from backfill_assets.models.source_reading import source_readings
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.snapshots.snapshot import STORED, Snapshot

if TYPE_CHECKING:
    from collections.abc import Mapping

    from backfill_assets.settings import Settings

FORMAT = 4


class CatalogError(BackfillAssetsError):
    """The catalog module can't be imported, or has no MODELS and SOURCES.

    Args:
        module: the catalog's name.
        found: what is wrong.
        do: what to do about it.
    """

    def __init__(self, module: str, found: str, do: str) -> None:
        self.module, self.found, self.do = module, found, do
        super().__init__(f"catalog '{module}': {found}; {do}")


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a catalog declares, and what it was read from.

    Attributes:
        origin: what the import depended on.
        loaded: the declarations, checked as a whole when they were imported.
    """

    origin: Origin
    loaded: Loaded

    def text(self) -> str:
        """Write it as JSON."""
        return json.dumps({"origin": asdict(self.origin), "loaded": _plain(self.loaded)})

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """Read back what was written; nothing is checked again."""
        return cls(_origin(stored), _loaded(stored["loaded"]))


def load(settings: Settings) -> Loaded:
    """Give the declarations as they are on disk now, imported only where something changed.

    Raises:
        CatalogError: the catalog can't be imported or lacks MODELS or SOURCES.
        DeclarationError: a declaration in it is wrong.
    """
    kept, computed = _place(settings), (settings.data_root, str(settings.cache.absolute()))
    return _kept(kept, computed) or _imported(settings, kept, computed)


def _kept(path: Path, computed: tuple[str, ...]) -> Loaded | None:
    """Read the manifest, unless it is missing or damaged, or something changed since."""
    try:
        stored = json.loads(path.read_bytes())
        if stored["format"] != FORMAT or _origin(stored).state(computed) != stored["state"]:
            return None
        return Manifest.read(stored).loaded
    except (OSError, ValueError, LookupError, TypeError, AttributeError, BackfillAssetsError):
        return None  # it can be made again


def _imported(settings: Settings, kept: Path, computed: tuple[str, ...]) -> Loaded:
    """Import in a separate process, and keep the manifest if nothing changed in the meantime."""
    catalog, began = settings.catalog, time.time_ns()
    done = subprocess.run(  # noqa: S603 - our own module, by the running interpreter
        [sys.executable, "-m", "backfill_assets.cli.importing", catalog],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(_search_path())},
        stdout=subprocess.PIPE,
        check=False,
    )
    try:
        stored = json.loads(done.stdout)
    except ValueError:
        problem = f"its import ended with exit code {done.returncode} and without a message"
        do = f"`python -c 'import {catalog}'` shows what it does"
        raise CatalogError(catalog, problem, do) from None
    if "unusable" in stored:
        raise CatalogError(catalog, stored["unusable"], stored["do"])
    if "wrong" in stored:
        raise DeclarationError(found=stored["wrong"])
    manifest = Manifest.read(stored)
    state = manifest.origin.state(computed)
    if manifest.origin.settled(began, computed):
        # Only commands that write data create a missing data folder.
        with suppress(OSError):  # without it, the next command is only slower
            kept.parent.mkdir(parents=bool(settings.cache_dir), exist_ok=True)
            _keep(kept, json.dumps({"format": FORMAT, "state": state, **stored}))
    return manifest.loaded


def _keep(path: Path, text: str) -> None:
    """Write the manifest whole or not at all, for its owner alone."""
    draft = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)
    draft.replace(path)


def _place(settings: Settings) -> Path:
    """One file per catalog, folder, interpreter and search path: none replaces another's."""
    where = (str(Path.cwd()), sys.version, sys.prefix, *_search_path())
    key = "\0".join((settings.catalog, *where))
    return settings.cache / f"manifest-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"


def _search_path() -> list[str]:
    """Where modules are looked for after the current folder, however this process was started."""
    started_from = ("", str(Path.cwd()), str(Path(sys.executable).parent))
    return [folder for folder in sys.path if folder not in started_from]


def failure_text(error: BackfillAssetsError, place: str = "") -> str:
    """Write why there is no manifest, and which line of the project it is about, if that is known."""
    if isinstance(error, CatalogError):
        return json.dumps({"unusable": error.found, "do": error.do})
    return json.dumps({"wrong": f"{place}: {error}" if place else str(error)})


def _plain(loaded: Loaded) -> str:
    graph = loaded.graph
    return dumps(
        {
            "models": tuple(graph.models[name] for name in graph.models),
            "sources": tuple(graph.sources[name] for name in graph.sources),
            "order": graph.order,
            "consumers": tuple(graph.consumers.values()),
            "fingerprints": {
                name: snapshot.fingerprint for name, snapshot in loaded.snapshots.items()
            },
            "reads": {
                name: {upstream: tuple(sorted(columns)) for upstream, columns in reads.items()}
                for name, reads in loaded.reads.items()
            },
        }
    )


def _loaded(text: str) -> Loaded:
    stored = restored(text, (*STORED, Source, WhenEmpty, Fingerprint, *CONSUMED))
    models = {model.name: model for model in stored["models"]}
    sources = {source.name: source for source in stored["sources"]}
    consumers = {consumer.name: consumer for consumer in stored["consumers"]}
    prints = stored["fingerprints"]
    graph = Graph(models, sources, stored["order"], consumers)
    return Loaded(
        graph,
        {
            name: Snapshot(models[name], prints[name], source_readings(graph, models[name]))
            for name in stored["order"]
        },
        {
            name: {upstream: frozenset(columns) for upstream, columns in reads.items()}
            for name, reads in stored["reads"].items()
        },
    )


def _origin(stored: Mapping[str, Any]) -> Origin:
    return Origin(**{name: tuple(names) for name, names in stored["origin"].items()})
