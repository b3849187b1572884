"""Another client of a Connect server: `python -m ... URL FOLDER FIRST`, every third day from FIRST."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

from backfill_assets.intervals import Daily
from backfill_assets.models.graph import Graph
from backfill_assets.state.store import Store
from backfill_assets.warehouse.spark.shared_session import SharedSession
from backfill_assets_tests.builders import a_graph, a_model, days
from backfill_assets_tests.engine.world import LEASE, Clock, World
from backfill_assets_tests.spark import small_settings

LOOP = "web.loop"
CLIENTS, DAYS = 3, 9


def graph() -> Graph:
    """Every event of a day."""
    return a_graph(a_model(LOOP, cadence=Daily(start="2024-01-01")))


def main(url: str, folder: str, first: str) -> None:
    root = Path(folder)
    shared = SharedSession(replace(small_settings(root), remote=url))
    state = f"sqlite:///{root / 'state.db'}"
    clock = Clock()
    with Store.open(
        state, clock=clock, lease_seconds=LEASE.total_seconds(), data_root=str(root)
    ) as store:
        world = World(shared(), root, store, clock, runs=1000 * int(first))
        for number in range(int(first), DAYS + 1, CLIENTS):
            world.fill(graph(), cells=days(number))
    shared.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
