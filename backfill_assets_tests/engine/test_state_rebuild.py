"""A state that is rebuilt from the logs alone counts a promotion in all of its tables, or in none."""

from __future__ import annotations

import json
import shutil
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.engine.plans.plan_verbs import rollback_plan
from backfill_assets.engine.upkeep.state_rebuild import read_logs, rebuild_state
from backfill_assets.models.column import Column
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.rule.needs_work import needs_work
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.snapshots.publication import PROMOTED
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import a_graph, a_model, a_source, day
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, MORE, OLD, ROWS, VISITS, changed
from backfill_assets_tests.engine.world import kept, row, told
from backfill_assets_tests.state.building import (
    NOON,
    Asked,
    add_model,
    content,
    version_of,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from backfill_assets.engine.upkeep.state_rebuild import RebuiltState
    from backfill_assets.models.graph import Graph
    from backfill_assets_tests.engine.world import World

MODELS = ("web.visits", "web.costs")


def clock():
    return NOON


def logged(root: Path, commit: BatchCommit, number: int) -> None:
    log = root / "tables" / "web" / commit.version / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    said = {"commitInfo": {"operation": "WRITE", "userMetadata": commit.to_json()}}
    (log / f"{number:020d}.json").write_text(json.dumps(said))


def filled(root: Path, model: str, *, exact: bool = True) -> BatchCommit:
    """Log a first batch of a model, as a state that is lost by now has opened it."""
    with Store.open(f"sqlite:///{root / model}.db", clock=clock) as store:
        add_model(store, model)
        opened = store.batches.open_batch(Asked(model=model).request)
        commit = write(store, opened, dict.fromkeys(opened.request.cells, content(1, 7, x=1, y=2)))
    logged(root, replace(commit, exact=exact), 0)
    return commit


@contextmanager
def rebuilt_state(
    loaded: Graph, root: Path, now: Callable[[], datetime]
) -> Iterator[tuple[Store, RebuiltState]]:
    """Rebuild another state from the logs of all tables, and tell what that found."""
    with Store.open(f"sqlite:///{root / 'again.db'}", clock=now, data_root=str(root)) as store:
        yield store, rebuild_state(store, loaded, read_logs(loaded, str(root)))


@pytest.mark.parametrize("copied", [1, 2])
def test_a_promotion_counts_in_all_of_its_tables_or_in_none(tmp_path: Path, copied: int):
    together = tuple(map(version_of, MODELS))
    for number, model in enumerate(MODELS):
        first = filled(tmp_path, model)
        copy = {"batch_id": f"p1:90:{model}", "plan_id": "p1", "reason": PROMOTED, "built_at": 90}
        if number < copied:
            logged(tmp_path, replace(first, **copy, together=together), 1)
    with rebuilt_state(a_graph(a_model()), tmp_path, clock) as (store, rebuilt):
        heads = [store.versions.known_head(table) for table in together]
        assert heads == ([1, 1] if copied == 2 else [0, 0])
        assert store.views.of("prod").counter >= 90
        told = [str(reason) for reason in rebuilt.left_out]
        assert [line.split(":")[0] for line in told] == ([] if copied == 2 else [together[0]])
        assert all(
            f"plan p1 is published there but not in {together[1]}" in line and "restore" in line
            for line in told
        )


def test_what_was_published_with_its_upstream_is_not_stale_in_a_rebuilt_state(
    world: World,
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    Plans(world).published(OLD, restate=(Restatement(VISITS),))
    with rebuilt_state(OLD, world.root, world.clock) as (store, _):
        work = needs_work(OLD, store.views.of("prod"), OLD.model(COSTS), now=world.clock())
        assert work.ready
        assert not work.stale_cells


def test_a_day_that_a_rollback_took_away_is_missing_in_a_rebuilt_state_too(
    world: World,
):
    world.begin(OLD, *ROWS)
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = Plans(world).published(OLD, restate=(Restatement(VISITS),))
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *changed(row(8, 1, 99.0)), row(11, 1, 11.0))
    world.fill(OLD)
    assert row(11, 1, 11.0)[:2] in world.rows(VISITS, "ds", "id")
    rollback_plan(Plans(world).project(OLD), plan)

    with rebuilt_state(OLD, world.root, world.clock) as (store, _):
        ready = [
            needs_work(OLD, each.views.of("prod"), OLD.model(VISITS), now=world.clock()).ready
            for each in (world.store, store)
        ]
    assert ready[0] == ready[1]
    assert day(11) not in ready[1]
    assert day(10) in ready[1]


@pytest.mark.parametrize(("loaded", "unsure"), [(OLD, (COSTS, VISITS)), (MORE, ())])
def test_a_definition_that_no_log_holds_is_named_where_it_is_not_loaded(
    world: World, loaded: Graph, unsure: tuple[str, ...]
):
    world.begin(OLD, *ROWS)
    Plans(world).published(MORE, forward_only=True)
    world.clock.now += timedelta(days=1)
    world.fill(MORE)
    with rebuilt_state(loaded, world.root, world.clock) as (_, rebuilt):
        assert rebuilt.unsure == unsure


@pytest.mark.parametrize(
    ("loaded", "rounded"), [("web.visits", {"y"}), ("web.costs", {"key", "x", "y"})]
)
def test_of_an_older_log_only_columns_that_were_rounded_are_marked_in_a_rebuild(
    tmp_path: Path, loaded: str, rounded: set[str]
):
    commit = filled(tmp_path, "web.visits", exact=False)
    types = {"ds": "date", "x": "bigint", "y": "double"}
    columns = tuple(Column(*column) for column in types.items())
    sql = "SELECT ds, x, y FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"
    model = a_model(name=loaded, sql=sql, columns=columns, unique_key=["x"])
    with rebuilt_state(a_graph(model), tmp_path, clock) as (store, _):
        found = store.versions.ready_records(commit.version, None)[0].content
    sums = {"key": found.key, **found.columns}
    assert {
        name for name, checksum in sums.items() if str(checksum).startswith("rounded:")
    } == rounded


def test_a_table_that_is_lost_is_filled_again_in_a_state_that_is_rebuilt_from_the_others(
    world: World, tmp_path_factory: pytest.TempPathFactory
):
    world.begin(OLD, *ROWS)
    root = tmp_path_factory.mktemp("elsewhere") / "data"
    shutil.copytree(world.root, root)
    shutil.rmtree(root / Path(world.path(VISITS)).relative_to(world.root))
    (root / "state.db").unlink()
    with rebuilt_state(OLD, root, world.clock) as (store, _):
        again = replace(world, store=store, root=root)

        filled_again = again.fill(OLD)

        assert told(filled_again[VISITS]) == ["committed"]
        assert again.rows(VISITS) == kept(*ROWS)
        again.land(a_source(), *changed(row(8, 1, 99.0)))
        Plans(again).published(OLD, restate=(Restatement(VISITS),))
        assert again.rows(VISITS) == kept(*changed(row(8, 1, 99.0)))
        assert [total for _, total in again.rows(COSTS, "ds", "total")] == [7, 99, 9, 10]
