"""Engines that read by name read what is published, from the transaction on that publishes it."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backfill_assets.engine.plans.moving import ConcurrentPublicationError
from backfill_assets.engine.plans.plan_verbs import rollback_plan, undo_plan
from backfill_assets.engine.project import iceberg
from backfill_assets.engine.project.iceberg import enable, enter_missing
from backfill_assets.engine.project.project import InProject
from backfill_assets.engine.upkeep.collecting import collect
from backfill_assets.errors import RequestError
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.environment import PROD, Environment
from backfill_assets.state.publications import PinMovedError
from backfill_assets.state.store import Store
from backfill_assets.warehouse.files.collection import GRACE
from backfill_assets_tests.builders import a_source
from backfill_assets_tests.engine.dying import Killed, die_after, mortal
from backfill_assets_tests.engine.names import catalogue, names_followed, rows_by_name
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, MORE, OLD, ROWS, VISITS, changed
from backfill_assets_tests.engine.world import LEASE, World, row

BAD = row(8, 1, 99.0)
PROD_COSTS = f"prod.{COSTS}"


@pytest.fixture
def named(world: World) -> World:
    """Four days were filled before there was a catalogue."""
    world.store.iceberg.disable()
    world.land(a_source(), *ROWS)  # not a beginning, which others would copy
    world.fill(OLD)
    enable(InProject(project=world.project(OLD)))
    return world


def pins_have_moved(*_: object) -> int:
    raise PinMovedError("a plan", PROD, (COSTS,))


def totals(world: World, name: str = PROD_COSTS) -> list[int]:
    return [int(total) for _, total in rows_by_name(world.root, name, "ds", "total")]


def test_what_is_published_already_has_a_name_as_soon_as_there_is_a_catalogue(named: World):
    assert totals(named) == [7, 8, 9, 10]
    assert names_followed(named) == 2


def test_a_batch_is_read_by_name_from_its_record_on(named: World):
    named.clock.now += timedelta(days=1)
    named.land(a_source(), *ROWS, row(11, 1, 11.0))
    with mortal(named) as store:
        doomed = World(named.spark, named.root, store, named.clock, runs=100)
        die_after("commit", doomed)
        with pytest.raises(Killed):
            doomed.fill(OLD)
    assert totals(named) == [7, 8, 9, 10], "a commit that is not recorded is not read"
    named.clock.pass_lease()
    named.fill(OLD)
    assert totals(named) == [7, 8, 9, 10, 11]


def test_a_promotion_and_its_rollback_move_every_name_and_leave_the_past_readable(named: World):
    plans = Plans(named)
    named.land(a_source(), *changed(BAD))
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    plans.apply(OLD, plan)
    assert totals(named) == [7, 8, 9, 10]
    plans.promote(OLD, plan)
    assert totals(named) == [7, 99, 9, 10]
    table = catalogue(named.root).load_table(PROD_COSTS)
    before = table.history()[-2].snapshot_id
    past = table.scan(snapshot_id=before, selected_fields=("total",)).to_arrow()
    assert sorted(int(total) for total in past["total"].to_pylist()) == [7, 8, 9, 10]
    rollback_plan(plans.project(OLD), plan)
    assert totals(named) == [7, 8, 9, 10]
    assert names_followed(named) == 2


def test_what_was_described_for_a_publication_that_was_given_up_is_no_past_of_its_names(
    named: World, monkeypatch: pytest.MonkeyPatch
):
    plans = Plans(named)
    named.land(a_source(), *changed(BAD))
    plan = plans.make(OLD, restate=(Restatement(VISITS),))
    plans.apply(OLD, plan)
    monkeypatch.setattr(type(named.store.publications), "publish", pins_have_moved)
    with pytest.raises(ConcurrentPublicationError):
        plans.promote(OLD, plan)
    monkeypatch.undo()

    named.clock.now += timedelta(days=1)
    named.land(a_source(), *changed(BAD), row(11, 1, 11.0))
    named.fill(OLD)
    assert totals(named) == [7, 8, 9, 10, 11]
    table = catalogue(named.root).load_table(PROD_COSTS)
    read = (
        table.scan(snapshot_id=each.snapshot_id, selected_fields=("total",)).to_arrow()
        for each in table.history()
    )
    assert all(99 not in rows["total"].to_pylist() for rows in read)
    assert names_followed(named) == 2


def test_a_new_table_takes_its_models_name_over_and_an_undo_gives_it_back(named: World):
    plans = Plans(named)
    identity = catalogue(named.root).load_table(PROD_COSTS).metadata.table_uuid
    plan = plans.published(MORE)
    table = catalogue(named.root).load_table(PROD_COSTS)
    assert (table.metadata.table_uuid, len(table.history())) == (identity, 2)
    undo_plan(plans.project(MORE), plan)
    assert totals(named) == [7, 8, 9, 10]
    assert catalogue(named.root).load_table(PROD_COSTS).metadata.table_uuid == identity


def test_an_environment_is_a_namespace_of_its_own(named: World):
    named.store.environments.save_environment(Environment("dev", protected=False, follows=PROD))
    assert totals(named, f"dev.{COSTS}") == [7, 8, 9, 10]
    Plans(named).published(MORE, "dev")
    reader = catalogue(named.root)
    columns = {
        environment: reader.load_table(f"{environment}.{VISITS}").schema().column_names
        for environment in ("prod", "dev")
    }
    assert columns["prod"] != columns["dev"]
    layered = named.store.environments.own_pointers("dev")[COSTS].under
    assert layered, "only some cells of it differ, so no table alone is it, and it has no name"
    assert names_followed(named) == 3


def test_names_read_on_after_gc_has_deleted_what_nothing_needs(named: World):
    plans = Plans(named)
    plans.published(MORE)
    named.clock.now += timedelta(days=60)
    collect(named.open(MORE), timedelta(days=30))
    collect(named.open(MORE), timedelta(days=30))
    assert names_followed(named) == 2


def test_who_reads_what_was_replaced_lately_reads_on_after_a_gc(named: World):
    held = catalogue(named.root).load_table(PROD_COSTS)
    folder, then = Path(named.path(COSTS)) / "_iceberg", named.clock.now.timestamp()
    for file in folder.iterdir():
        os.utime(file, (then, then))
    named.clock.now += 2 * GRACE
    named.land(a_source(), *ROWS, row(11, 1, 11.0), row(12, 1, 12.0))
    named.fill(OLD)

    collect(named.open(OLD), timedelta(days=30))

    assert sorted(int(total) for total in held.scan().to_arrow()["total"].to_pylist()) == [
        7,
        8,
        9,
        10,
    ]
    past = (
        catalogue(named.root)
        .load_table(PROD_COSTS)
        .scan(snapshot_id=held.history()[-1].snapshot_id)
    )
    assert past.to_arrow().num_rows == 4
    named.clock.now = datetime.now(UTC) + 2 * GRACE  # files have the time of the disk
    collect(named.open(OLD), timedelta(days=30))
    with pytest.raises(FileNotFoundError):
        held.scan().to_arrow()
    assert names_followed(named) == 2


def test_gc_deletes_every_description_once_the_catalogue_is_disabled(named: World):
    folder = Path(named.path(COSTS)) / "_iceberg"
    assert any(folder.iterdir())
    named.store.iceberg.disable()
    named.clock.now = datetime.now(UTC) + 2 * GRACE  # files have the time of the disk
    collect(named.open(OLD), timedelta(days=30))
    assert not any(folder.iterdir())
    enable(InProject(project=named.project(OLD)))
    assert names_followed(named) == 2


def test_a_copied_folder_has_names_for_its_own_files(named: World, tmp_path: Path):
    copy = tmp_path / "copy"
    shutil.copytree(named.root, copy, ignore=shutil.ignore_patterns("copy"))
    url, lease = f"sqlite:///{copy}/state.db", LEASE.total_seconds()
    with Store.open(url, clock=named.clock, lease_seconds=lease, data_root=str(copy)) as store:
        there = World(named.spark, copy, store, named.clock, runs=100)
        enter_missing(InProject(project=there.project(OLD)))
        assert names_followed(there) == 2
    assert names_followed(named) == 2


def test_a_table_that_is_lost_has_no_name_and_keeps_no_other_from_having_one(named: World):
    named.store.iceberg.disable()
    shutil.rmtree(named.path(VISITS))
    names = enable(InProject(project=named.project(OLD)))
    assert [name.name for name in names] == [PROD_COSTS]


def test_without_the_library_it_says_what_to_install_and_nothing_is_enabled(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    world.store.iceberg.disable()
    monkeypatch.setattr(iceberg, "find_spec", lambda _: None)
    with pytest.raises(RequestError, match=r"pip install 'backfill-assets\[iceberg\]'"):
        enable(InProject(project=world.project(OLD)))
    assert world.store.iceberg.catalogue() is None
