"""Another process that fills cells of one table: `python -m ... FOLDER odd|killed LAST`."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets.engine.batch.effects import Effects
from backfill_assets.intervals import Daily
from backfill_assets.models.graph import Graph
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import a_graph, a_model, days
from backfill_assets_tests.engine.world import LEASE, Clock, World
from backfill_assets_tests.fake_warehouse import fake_warehouse
from backfill_assets_tests.spark import start_test_session

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOP = "web.loop"


@dataclass(frozen=True)
class Fixed:
    """What both processes agree on."""

    graph: Graph
    now: datetime


GRAPH = Fixed(
    a_graph(a_model(LOOP, cadence=Daily(start="2024-01-01"), batch_size=4)),
    datetime(2024, 1, 31, tzinfo=UTC),
)


@contextmanager
def a_session(root: Path) -> Iterator[Any]:
    """What computes rows here, as in the process that has started this one."""
    if "BACKFILL_TEST_SPARK" not in os.environ:
        with fake_warehouse() as fake:
            yield fake
        return
    spark = start_test_session(root / "spark")
    yield spark
    spark.stop()


def main(folder: str, what: str, last: str) -> None:
    clock = Clock(GRAPH.now)
    root = Path(folder)
    url = f"sqlite:///{root / 'state.db'}"
    with (
        a_session(root) as session,
        Store.open(
            url, clock=clock, lease_seconds=LEASE.total_seconds(), data_root=str(root)
        ) as store,
    ):
        world = World(session, root, store, clock, runs=1000)
        if what == "killed":
            world.effects = Effects(record=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
            world.fill(GRAPH.graph, cells=days(*range(1, int(last) + 1)))
        for number in range(1, int(last) + 1, 2):
            world.fill(GRAPH.graph, cells=days(number))


if __name__ == "__main__":
    main(*sys.argv[1:])
