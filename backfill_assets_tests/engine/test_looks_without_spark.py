"""Looks at sources that need no Spark, and what keeps them from seeing anything."""

from __future__ import annotations

import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.engine.fill.observing import observe_sources
from backfill_assets.intervals import IntervalSet
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.observation import Observation
from backfill_assets_tests.builders import EVENTS, a_graph, a_source
from backfill_assets_tests.engine.queue_world import QueueWorld
from backfill_assets_tests.engine.test_looked_again import VISITS, land

if TYPE_CHECKING:
    from pathlib import Path


def test_a_source_whose_folder_cannot_be_read_keeps_nobody_from_looking_at_the_others(
    tmp_path: Path,
):
    broken = a_source("web.broken")
    world = QueueWorld(tmp_path, a_graph(VISITS, sources=[broken, a_source()]))
    (tmp_path / broken.path / "_delta_log" / f"{0:020d}.json").mkdir(parents=True)
    land(world, 1)

    found = observe_sources(world.store, [broken, a_source()], str(tmp_path), None)

    assert [(source_look.source, source_look.judged) for source_look in found] == [
        ("web.broken", False)
    ]
    assert "web.broken" in found[0].note
    assert "IsADirectoryError" in found[0].note
    assert list(world.store.sources.observed()) == [EVENTS]


def test_a_look_counts_the_bytes_of_the_files_once_per_head(tmp_path: Path):
    world = QueueWorld(tmp_path, a_graph(VISITS, sources=[a_source()]))
    sizes: list[int | None] = []
    for number in (1, 2):
        land(world, number)
        observe_sources(world.store, [a_source()], str(tmp_path), None)
        sizes.append(world.store.sources.observed()[EVENTS].bytes)

    files = (tmp_path / a_source().path).rglob("*.parquet")
    assert sizes[1] == sum(file.stat().st_size for file in files)
    assert 0 < (sizes[0] or 0) < (sizes[1] or 0)
    assert observe_sources(world.store, [a_source()], str(tmp_path), None) == ()


def test_a_source_that_an_older_release_looked_at_is_looked_at_once_for_its_bytes(tmp_path: Path):
    world = QueueWorld(tmp_path, a_graph(VISITS, sources=[a_source()]))
    land(world, 1)
    observe_sources(world.store, [a_source()], str(tmp_path), None)
    known = world.store.sources.observed()[EVENTS]
    assert world.store.sources.observe(Observation(replace(known, bytes=None), known))
    counter = world.store.views.of(PROD).counter

    (found,) = observe_sources(world.store, [a_source()], str(tmp_path), None)

    assert (found.changed, found.note) == (IntervalSet.empty(), "")
    assert world.store.sources.observed()[EVENTS].bytes == known.bytes
    assert world.store.views.of(PROD).counter == counter
    assert observe_sources(world.store, [a_source()], str(tmp_path), None) == ()


def test_a_source_whose_table_is_gone_was_not_looked_at(tmp_path: Path):
    world = QueueWorld(tmp_path, a_graph(VISITS, sources=[a_source()]))
    land(world, 1)
    shutil.rmtree(tmp_path / a_source().path)

    (found,) = observe_sources(world.store, [a_source()], str(tmp_path), None)

    assert not found.judged
    assert "is missing now; restore it" in found.note
