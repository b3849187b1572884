"""Crashes and contention: same content, nothing twice, nothing lost, nobody else's rows."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from deltalake import DeltaTable

from backfill_assets.engine.batch.batch_inputs import batch_inputs
from backfill_assets.engine.batch.requests import batch_request
from backfill_assets.engine.fill import schedule
from backfill_assets.engine.project.batch_policy import BatchPolicy
from backfill_assets.engine.project.events import Committed, Failed, Skipped
from backfill_assets.engine.upkeep.collecting import GRACE
from backfill_assets.engine.upkeep.state_rebuild import read_logs, rebuild_state
from backfill_assets.intervals import Daily, IntervalSet
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.snapshots.batch import BatchCommit
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.state.batches import Batches
from backfill_assets.state.claims import CellsClaimedError
from backfill_assets.state.database import Database
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import a_graph, a_model, a_source, day, days
from backfill_assets_tests.engine.committer import GRAPH, LOOP
from backfill_assets_tests.engine.dying import (
    STEPS,
    Killed,
    before,
    before_call,
    die_after,
    mortal,
)
from backfill_assets_tests.engine.world import Clock, World, ended, kept, read, row, text, told

if TYPE_CHECKING:
    from backfill_assets.models.graph import Graph
    from backfill_assets.models.kind import Kind

VISITS = "web.visits"
ONCE = BatchPolicy(attempts=1)
"""What fails is left for the next run, so that one can look at it."""
FOUR_DAYS = Daily(start="2024-01-07")
ROWS = [row(n, id_, float(n * id_)) for n in range(7, 11) for id_ in (1, 2)]
MERGED = IncrementalByUniqueKey("ds")


def visits(**declared: Any) -> Graph:  # noqa: ANN401
    return a_graph(a_model(cadence=FOUR_DAYS, **declared))


def batches_in_log(world: World, name: str = VISITS) -> list[str]:
    """The cells of every batch that the table's log holds, oldest first."""
    history = sorted(DeltaTable(world.path(name)).history(), key=lambda entry: entry["version"])
    found = [BatchCommit.from_json(entry.get("userMetadata")) for entry in history]
    return [str(commit.stretches.span()) for commit in found if commit is not None]


@pytest.mark.parametrize("step", [*STEPS, "record"])
def test_a_process_that_dies_after_any_step_leaves_only_the_rest_to_do(world: World, step: str):
    graph = visits(batch_size=2)
    world.land(a_source(), *ROWS)
    with mortal(world) as store:
        doomed = World(world.spark, world.root, store, world.clock, runs=100)
        die_after(step, doomed)
        with pytest.raises(Killed):
            doomed.fill(graph)
    committed = step in ("commit", "record")
    assert world.rows(VISITS) == (kept(*ROWS[:4]) if step == "record" else [])
    world.clock.pass_lease()
    events = world.fill(graph)[VISITS]
    assert told(events) == (["committed", "skipped"] if committed else ["committed"] * 2)
    assert world.rows(VISITS) == kept(*ROWS)
    assert len(batches_in_log(world)) == len(set(batches_in_log(world))) == 2
    statuses = sorted(batch.status for batch in world.store.batches.latest())
    assert statuses == ["abandoned"] * (not committed) + ["committed"] * 2
    assert told(world.fill(graph)[VISITS]) == ["skipped"]


def test_an_interrupt_reaches_the_run_and_gives_the_cells_back(world: World):
    graph = visits()
    world.land(a_source(), *ROWS)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with world.doing(audited=interrupted), pytest.raises(KeyboardInterrupt):
        world.fill(graph)
    (stopped,) = world.store.batches.latest()
    assert (stopped.status, stopped.failure) == ("failed", FailureKind.CANCELLED)
    assert told(world.fill(graph)[VISITS]) == ["committed"]


def test_a_commit_whose_process_dies_is_adopted_by_a_run_that_waited_for_it(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    graph = visits(batch_size=2)
    world.land(a_source(), *ROWS)

    def another_run_dies() -> None:
        with mortal(world) as store:
            doomed = World(world.spark, world.root, store, world.clock, runs=100)
            die_after("commit", doomed)
            with pytest.raises(Killed):
                doomed.fill(graph, cells=days(7, 8))
        world.clock.pass_lease()

    before_call(schedule, "batch_request", another_run_dies, monkeypatch)
    events = world.fill(graph)[VISITS]
    assert told(events) == ["committed", "skipped"]
    assert len(batches_in_log(world)) == 2
    assert world.rows(VISITS) == kept(*ROWS)


def test_what_a_stranger_appends_is_never_in_a_pin_and_is_taken_back(world: World):
    graph = visits()
    world.land(a_source(), *ROWS, row(11))
    world.fill(graph)
    world.scribble(VISITS, row(8, 99), row(11, 99))
    assert world.rows(VISITS) == kept(*ROWS)
    world.clock.now = day(12).start
    assert told(world.fill(graph)[VISITS]) == ["committed", "skipped"]
    assert world.rows(VISITS) == kept(*ROWS, row(11))
    assert read(world.path(VISITS), ("ds", "id", "cost")) == kept(*ROWS, row(11))


def test_a_stranger_who_slips_in_right_before_a_commit_is_taken_back_with_it(world: World):
    world.batch_policy, graph = ONCE, visits()
    world.land(a_source(), *ROWS)
    world.fill(graph, cells=days(7, 8))
    before(world, "commit", lambda: world.scribble(VISITS, row(8, 99)))
    (failed,) = ended(world.fill(graph)[VISITS], Failed)
    assert "another writer committed" in failed.error
    assert world.rows(VISITS) == kept(*ROWS[:4])
    assert told(world.fill(graph)[VISITS]) == ["committed", "skipped"]
    assert world.rows(VISITS) == kept(*ROWS)


def test_a_table_that_is_not_ours_is_left_alone(world: World):
    graph = visits()
    world.land(a_source(), *ROWS)
    world.open(graph)
    world.scribble(VISITS, row(8, 99))
    (failed,) = ended(world.fill(graph)[VISITS], Failed)
    assert "was not created by this project" in failed.error
    assert read(world.path(VISITS), ("ds", "id", "cost")) == kept(row(8, 99))


def test_a_batch_whose_cells_another_one_has_claimed_meanwhile_commits_nothing(world: World):
    world.batch_policy = ONCE
    graph = visits()
    world.land(a_source(), *ROWS)

    def sleep_until_another_claims() -> None:
        world.clock.pass_lease()
        other = world.open(graph)
        request = batch_request(other, other.graph.model(VISITS), days(7, 10))
        world.store.batches.open_batch(request)

    before(world, "audited", sleep_until_another_claims)
    (failed,) = ended(world.fill(graph)[VISITS], Failed)

    assert "no longer holds its cells" in failed.error
    assert world.head(VISITS) == -1


@pytest.mark.parametrize("kind", [None, MERGED], ids=["replaced", "merged"])
@pytest.mark.parametrize("filled", [(), (7,)], ids=["new_table", "old_table"])
def test_a_holder_that_wakes_after_a_takeover_commits_nothing(
    world: World, filled: tuple[int, ...], kind: Kind | None
):
    world.batch_policy = ONCE
    graph = visits(**({} if kind is None else {"kind": kind, "unique_key": ["id", "ds"]}))
    world.land(a_source(), *ROWS)
    if filled:
        world.fill(graph, cells=days(*filled))

    def sleep_through_a_takeover() -> None:
        world.clock.pass_lease()
        assert told(world.fill(graph)[VISITS])[0] == "committed"

    before(world, "commit", sleep_through_a_takeover)
    (failed,) = ended(world.fill(graph)[VISITS], Failed)
    assert "run again" in failed.error
    assert world.store.batches.get(failed.batch_id).status in ("failed", "abandoned")
    assert world.rows(VISITS) == read(world.path(VISITS), ("ds", "id", "cost")) == kept(*ROWS)
    assert len(batches_in_log(world)) == 1 + bool(filled)


def test_a_second_run_waits_for_the_cells_of_a_first(world: World, monkeypatch: pytest.MonkeyPatch):
    graph = visits()
    world.land(a_source(), *ROWS)
    second = world.open(graph)
    at_work, refused = threading.Event(), threading.Event()
    open_batch = Batches.open_batch

    def opened(batches: Batches[Database], request: Any) -> Any:  # noqa: ANN401
        try:
            return open_batch(batches, request)
        except CellsClaimedError:
            refused.set()
            raise

    def slow(run: Any, *rest: Any) -> Any:  # noqa: ANN401
        at_work.set()
        assert refused.wait(120)
        return batch_inputs(run, *rest)

    monkeypatch.setattr(Batches, "open_batch", opened)
    with world.doing(inputs=slow):
        first = world.open(graph)
    thread = threading.Thread(target=world.go, args=(first,))
    thread.start()
    assert at_work.wait(120)
    events = world.go(second)[VISITS]
    thread.join()
    assert told(events) == ["skipped"]
    assert len(batches_in_log(world)) == 1


def test_a_run_that_waited_in_vain_says_who_holds_the_cells(world: World, clock: Clock):
    graph = visits()
    world.land(a_source(), *ROWS)
    holder = world.open(graph)
    url = f"sqlite:///{world.root / 'state.db'}"
    world.store.batches.open_batch(batch_request(holder, graph.model(VISITS), days(8)))
    with Store.open(url, clock=clock, lease_seconds=0.5, data_root=str(world.root)) as impatient:
        other = World(world.spark, world.root, impatient, clock, runs=50)
        (failed,) = ended(other.fill(graph)[VISITS], Failed)
    assert f"being built by run {holder.run_id}" in failed.error


def test_a_computation_longer_than_the_lease_keeps_its_cells_by_its_heartbeat(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    graph = visits()
    world.land(a_source(), *ROWS)
    beat, heartbeat = threading.Event(), Batches.heartbeat

    def beating(batches: Batches[Database], run_id: str) -> None:
        heartbeat(batches, run_id)
        beat.set()

    url = f"sqlite:///{world.root / 'state.db'}"
    with Store.open(url, clock=world.clock, lease_seconds=1, data_root=str(world.root)) as store:
        patient = World(world.spark, world.root, store, world.clock, runs=50)

        def compute_long() -> None:
            world.clock.pass_lease()
            monkeypatch.setattr(Batches, "heartbeat", beating)
            assert beat.wait(120)
            held = store.views.of(world.environment).claimed[VISITS]
            assert text(graph, VISITS, held) == "2024-01-07..2024-01-10 (4)"

        before(patient, "audited", compute_long)
        assert told(patient.fill(graph)[VISITS]) == ["committed"]


def test_a_batch_that_took_longer_than_files_without_a_log_are_kept_commits_nothing(world: World):
    world.land(a_source(), *ROWS)

    def compute_for_days() -> None:
        world.clock.now += GRACE

    before(world, "audited", compute_for_days)
    (failed,) = ended(world.fill(visits())[VISITS], Failed)
    assert "began more than 24 hours ago" in failed.error
    assert failed.kind is FailureKind.TIMEOUT
    assert world.rows(VISITS) == []
    assert told(world.fill(visits())[VISITS]) == ["committed"]


def test_a_table_that_lost_commits_is_not_written(world: World):
    graph = visits()
    world.land(a_source(), *ROWS)
    world.fill(graph, cells=days(7, 8))
    newest = max(Path(world.path(VISITS), "_delta_log").glob("*.json"))
    whole = newest.read_bytes()
    newest.unlink()
    failures = ended(world.fill(graph)[VISITS], Failed)
    assert "it ends at commit 0, though commit 1 is recorded" in failures[0].error
    newest.write_bytes(whole)
    assert told(world.fill(graph)[VISITS]) == ["committed", "skipped"]


def test_a_batch_fills_the_rest_where_another_run_has_filled_some_of_its_cells(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    graph = visits()
    world.land(a_source(), *ROWS)
    before_call(schedule, "batch_request", lambda: world.fill(graph, cells=days(8)), monkeypatch)
    events = world.fill(graph)[VISITS]
    (skipped,) = ended(events, Skipped)
    assert list(skipped.built_by) == [day(8)]
    done = IntervalSet.union_all(event.cells for event in ended(events, Committed))
    assert text(graph, VISITS, done) == "2024-01-07, 2024-01-09..2024-01-10 (2)"
    assert world.rows(VISITS) == kept(*ROWS)


def test_a_batch_reads_its_pins_though_its_upstream_moves_while_it_computes(world: World):
    from backfill_assets.engine.project.run_context import PublishedCells  # noqa: PLC0415
    from backfill_assets.snapshots.environment import Environment  # noqa: PLC0415

    world.store.environments.save_environment(Environment("dev", protected=False))
    world.environment = "dev"
    child = a_model("web.child", upstreams=[VISITS], cadence=FOUR_DAYS)
    graph = a_graph(a_model(cadence=FOUR_DAYS), child)
    world.land(a_source(), *ROWS)
    world.fill(graph, VISITS)

    def upstream_moves() -> None:
        world.land(a_source(), *ROWS, row(9, 3))
        world.fill(graph, VISITS, published=PublishedCells.REBUILT)

    before(world, "computed", upstream_moves)
    (done,) = ended(world.fill(graph, "web.child")["web.child"], Committed)
    assert world.rows("web.child") == kept(*ROWS)
    (pin,) = world.store.batches.get(done.batch_id).inputs
    assert pin.delta_version < world.pointer(VISITS).delta_version
    assert told(world.fill(graph)["web.child"]) == ["left stale", "skipped"]


def test_a_rebuilt_state_gives_the_same_answers_after_fences_and_strangers(world: World):
    child = a_model("web.child", upstreams=[VISITS], cadence=FOUR_DAYS)
    world.batch_policy = ONCE
    graph = a_graph(a_model(cadence=FOUR_DAYS), child)
    world.land(a_source(), *ROWS)
    with mortal(world) as store:
        doomed = World(world.spark, world.root, store, world.clock, runs=100)
        die_after("commit", doomed)
        with pytest.raises(Killed):
            doomed.fill(graph, VISITS, cells=days(7))
    world.clock.pass_lease()
    world.fill(graph, cells=days(7, 8))
    # A stranger, and a batch that came right behind it: both were taken back.
    before(world, "commit", lambda: world.scribble(VISITS, row(7, 99)))
    assert told(world.fill(graph, VISITS, cells=days(9))[VISITS]) == ["failed"]
    world.fill(graph, VISITS, cells=days(10))
    world.scribble(VISITS, row(9, 99))  # nobody has taken this one back yet
    asked = ("web.child", VISITS)
    ready = [world.ready(graph, name) for name in asked]
    rows = [world.rows(name) for name in asked]
    url = f"sqlite:///{world.root / 'again.db'}"
    with Store.open(
        url, clock=world.clock, lease_seconds=600, data_root=str(world.root)
    ) as rebuilt:
        rebuild_state(rebuilt, graph, read_logs(graph, str(world.root)))
        again = World(world.spark, world.root, rebuilt, world.clock, runs=200)
        assert [again.ready(graph, name) for name in asked] == ready
        assert [again.rows(name) for name in asked] == rows
        assert ready[1] == "2024-01-07..2024-01-08 (2), 2024-01-10"
        assert told(
            again.fill(
                graph,
                cells=days(7, 8, 10),
            )[VISITS]
        ) == ["skipped"]
        again.fill(graph)
        assert [again.rows(name) for name in asked] == [kept(*ROWS)] * 2
        assert read(again.path(VISITS), ("ds", "id", "cost")) == kept(*ROWS)


def loop(world: World, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "backfill_assets_tests.engine.committer"]
    checkout = Path(__file__).parents[2]
    return subprocess.Popen([*command, str(world.root), *arguments], cwd=checkout)


@pytest.mark.parametrize("last", [8, pytest.param(30, marks=pytest.mark.slow)])
def test_two_processes_that_commit_to_one_table_lose_nothing(world: World, clock: Clock, last: int):
    clock.now = GRAPH.now
    rows = [row(n, id_) for n in range(1, last + 1) for id_ in (1, 2)]
    world.land(a_source(), *rows)
    world.open(GRAPH.graph)
    other = loop(world, "odd", str(last))
    for number in range(2, last + 1, 2):
        (event,) = ended(world.fill(GRAPH.graph, cells=days(number))[LOOP], Committed)
        assert event.cells.span() == day(number)
    assert other.wait(600) == 0
    assert world.rows(LOOP) == read(world.path(LOOP), ("ds", "id", "cost")) == kept(*rows)
    assert len(batches_in_log(world, LOOP)) == len(set(batches_in_log(world, LOOP))) == last


def test_a_killed_process_loses_nothing_and_its_commit_is_adopted(world: World, clock: Clock):
    clock.now = GRAPH.now
    rows = [row(n) for n in range(1, 9)]
    world.land(a_source(), *rows)
    assert loop(world, "killed", "4").wait(600) == -signal.SIGKILL
    clock.pass_lease()
    events = world.fill(GRAPH.graph, cells=days(*range(1, 9)))
    assert told(events[LOOP]) == ["committed", "skipped"]
    assert world.rows(LOOP) == kept(*rows)
    assert len(batches_in_log(world, LOOP)) == 2
