"""The sensor's tick: what is ready to be released, of 500 models over ten years, from SQLite.

The state is a real one of 1.8 million ready records. A tick looks at a bounded number of models and
goes on where it ended, so the first round takes several; afterwards only what moved is looked at.
`python -m benchmarks.tick` measures it alone; the benchmark as a whole has it too.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import timedelta
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

import sqlalchemy as sa
import typer

from backfill_assets.engine.automatic.scan import ready_work
from backfill_assets.engine.automatic.scan_memory import ScanMemory
from backfill_assets.engine.project.opening import open_run
from backfill_assets.engine.project.project import Project
from backfill_assets.models.codec import dumps
from backfill_assets.models.content import ChangedAt, Content
from backfill_assets.models.graph import build_graph
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.state.store import Store
from benchmarks.commands import RESULTS
from benchmarks.part import Part, rounded
from benchmarks.planning import DAYS, MODELS, START, chain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from backfill_assets.models.graph import Graph

GOAL, REPEATS, DAY = 1.0, 5, 86_400
_BUILT = 1_000
_ROUND = "ticks of the first round"


def ticks(folder: Path) -> dict[str, float]:
    """Build the state, then look until nothing is new, then again, and after another day."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    now = START + timedelta(days=DAYS)
    graph = _unsourced(chain())
    with Store.open(
        f"sqlite:///{folder}/state.db", clock=lambda: now, data_root=str(folder)
    ) as store:
        _fill(store, graph, folder, now)
        project = _project(store, graph, folder, now)
        memory, first = _until_known(project)
        steady = [_timed(project, memory)[0] for _ in range(REPEATS)]
        later = replace(project, clock=lambda: now + timedelta(days=1))
        _, daily = _until_known(later, memory, rounds=1)
    shutil.rmtree(folder)
    return {
        _ROUND: float(len(first)),
        "slowest tick of the first round": max(first),
        "nothing moved": median(steady),
        "a new day in every model": max(daily),
    }


def tick_part(folder: Path) -> Part:
    """Measure it as a part of the benchmark."""
    took = ticks(folder / "runs" / "tick")
    title = f"sensor: {MODELS} models x {DAYS:,} days on SQLite, seconds a tick (goal < {GOAL})"
    slowest = max(seconds for name, seconds in took.items() if name != _ROUND)
    return Part(
        name="tick_s",
        figures=rounded(took),
        lines=(title, *(f"  {name:<34} {value:>7.2f}" for name, value in took.items())),
        ratios={"slowest tick, s": slowest},
        goals={"slowest tick, s": f"< {GOAL}"},
    )


def _until_known(
    project: Project, memory: ScanMemory | None = None, rounds: int = 10_000
) -> tuple[ScanMemory, list[float]]:
    """Tick until no model is asked about any more, or so many times."""
    known, took = memory or ScanMemory(), list[float]()
    for _ in range(rounds):
        seconds, known, asked = _timed(project, known)
        if not asked:
            break
        took.append(seconds)
    return known, took


def _timed(project: Project, memory: ScanMemory) -> tuple[float, ScanMemory, int]:
    began = perf_counter()
    # The memory travels through the sensor's cursor, so that is measured with it.
    found = ready_work(project, ScanMemory.read(memory.text()))
    return perf_counter() - began, found.memory, found.asked


def _unsourced(graph: Graph) -> Graph:
    """Take the source as one that can't be observed: it keeps no cell from being filled."""
    sources = [replace(source, observed=False) for source in graph.sources.values()]
    return build_graph(graph.models.values(), sources)


def _project(store: Store, graph: Graph, folder: Path, now: datetime) -> Project:
    known = Loaded.of(graph)
    _ = [*known.reads.values()]  # traced before anything is measured
    return Project(
        store=store,
        loaded=known,
        spark=lambda: None,
        data_root=str(folder),
        clock=lambda: now,
        run_id="benchmark",
    )


def _fill(store: Store, graph: Graph, folder: Path, now: datetime) -> None:
    """Give every model its pointer, and say that each of its days is ready."""
    open_run(_project(store, graph, folder, now), PROD)
    versions = {
        name: pointer.version for name, pointer in store.environments.pointers(PROD).items()
    }
    engine = sa.create_engine(f"sqlite:///{folder}/state.db")
    with engine.begin() as database:
        database.execute(sa.text("UPDATE pointers SET delta_version = 1"))
        database.execute(sa.text("UPDATE versions SET known_head = 1"))
        database.execute(sa.text("UPDATE counter SET value = 1000000"))
        for number, name in enumerate(graph.order):
            database.execute(_INSERT, list(_records(versions[name], _BUILT + number)))
    engine.dispose()


_INSERT = sa.text(
    "INSERT INTO ready_records (version, starts, valid_from, ends, built_at, fingerprint, batch_id,"
    " content, changed_at) VALUES (:version, :starts, 1, :ends, :built_at, :version, 'b',"
    " :content, :changed_at)"
)


def _records(version: str, built_at: int) -> Iterator[dict[str, object]]:
    first = int(START.timestamp())
    content = dumps(Content(100, 12_345, {"ds": 1, "id": 2}))
    stamps = dumps(ChangedAt(built_at, {"ds": built_at, "id": built_at}))
    for day in range(DAYS):
        yield {
            "version": version,
            "starts": first + day * DAY,
            "ends": first + (day + 1) * DAY,
            "built_at": built_at,
            "content": content,
            "changed_at": stamps,
        }


def main() -> None:
    """Measure it alone."""
    for line in tick_part(RESULTS).lines:
        typer.echo(line)


if __name__ == "__main__":
    typer.run(main)
