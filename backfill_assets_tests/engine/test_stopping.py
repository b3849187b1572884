"""Batches that are stopped while rows are computed: by their time, by a person, by the end of their run."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.batch.commit_turn import commit_turn
from backfill_assets.engine.batch.effects import Effects, commit
from backfill_assets.engine.fill import watching
from backfill_assets.engine.fill.fill import fill_cells
from backfill_assets.engine.project.batch_policy import BatchPolicy
from backfill_assets.engine.project.cancelling import RunCancelledError
from backfill_assets.engine.project.events import Committed, Failed, Started
from backfill_assets.intervals import Daily
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.warehouse.rows.inputs import compute
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import ended, row, run_targets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from backfill_assets.engine.project.events import Event
    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.graph import Graph
    from backfill_assets.state.batch_rows import BatchRow
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"
GRAPH = a_graph(a_model(cadence=Daily(start="2024-01-10")))


class InterruptedRunError(BaseException):
    """What Dagster raises in the main thread when a run is cancelled in its UI."""


def endless(session: Any, *_: object) -> Any:  # noqa: ANN401 - rows that never come to an end
    return session.sql(
        "SELECT DATE'2024-01-10' AS ds, id, CAST(1 AS DECIMAL(18,2)) AS cost "
        "FROM range(1000000000000000) WHERE id % 7 = 8"
    )


def opened(
    world: World,
    steps: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    graph: Graph = GRAPH,
) -> RunContext:
    """Open a run whose batches may take `timeout` seconds, and do not end unless `steps` say so."""
    world.land(a_source(), row(10))
    with world.doing(**{"rows": endless, **(steps or {})}):
        run = world.open(graph)
    return replace(run, project=replace(run.project, batch_policy=BatchPolicy(timeout=timeout)))


def nothing_of_it_is_left(world: World, kind: FailureKind) -> BatchRow:
    """The batch is recorded as failed, and gave everything back; the next run fills its cells."""
    (found,) = world.store.batches.latest(model=VISITS)
    assert (found.status, found.failure) == ("failed", kind)
    assert world.head(VISITS) == -1
    assert world.store.limits.in_flight() == ()
    assert world.store.views.of("prod").claimed == {}
    assert len(ended(world.fill(GRAPH)[VISITS], Committed)) == 1
    assert len(world.rows(VISITS)) == 1
    return found


@pytest.mark.spark
def test_a_batch_whose_time_is_over_is_cancelled_and_not_tried_again(world: World):
    run = opened(world, timeout=0.2)
    (failed,) = ended(world.go(run)[VISITS], Failed)
    assert failed.kind is FailureKind.TIMEOUT
    assert "within 0.2 s" in failed.error
    found = nothing_of_it_is_left(world, FailureKind.TIMEOUT)
    assert found.error == failed.error


def test_a_models_own_time_counts_more_than_the_settings(world: World):
    graph = a_graph(a_model(cadence=Daily(start="2024-01-10"), batch_timeout=0.2))
    run = opened(world, timeout=10**6, graph=graph)
    (failed,) = ended(world.go(run)[VISITS], Failed)
    assert failed.kind is FailureKind.TIMEOUT


def test_a_commit_that_has_begun_is_brought_to_its_end_whatever_is_cancelled(world: World):
    def cancelled(*given: Any) -> Any:  # noqa: ANN401
        run.flights.cancel(RunCancelledError(run.run_id))
        return commit(*given)

    steps = {"rows": compute, "commit": cancelled}
    run = opened(world, steps, timeout=10**6)
    (done,) = ended(world.go(run)[VISITS], Committed)
    assert done.rows == 1
    assert world.store.batches.latest(model=VISITS)[0].status == "committed"


def test_a_batch_that_is_cancelled_just_before_its_turn_commits_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    @contextmanager
    def late(*given: Any) -> Iterator[Any]:  # noqa: ANN401 - as the real one
        with commit_turn(*given) as lock:
            run.flights.cancel(RunCancelledError(run.run_id))
            yield lock

    run = opened(world, {"rows": compute, "turn": late})
    (failed,) = ended(world.go(run)[VISITS], Failed)
    assert failed.kind is FailureKind.CANCELLED
    monkeypatch.undo()
    nothing_of_it_is_left(world, FailureKind.CANCELLED)


def when_started(do: Callable[[], object]) -> Callable[[Event], None]:
    """Listen, and do something once a batch computes."""

    def listen(event: Event) -> None:
        if isinstance(event, Started):
            do()

    return listen


def go(run: RunContext, listen: Callable[[Event], None]) -> None:
    fill_cells(run, {VISITS: run_targets(run, VISITS)}, listen)


def interrupted() -> None:
    raise InterruptedRunError


def test_a_run_that_is_cancelled_while_it_reports_cancels_its_batches(world: World):
    with pytest.raises(InterruptedRunError):
        go(opened(world), when_started(interrupted))
    nothing_of_it_is_left(world, FailureKind.CANCELLED)


@contextmanager
def signals(raised: type[BaseException]) -> Iterator[Callable[[], None]]:
    """Give what lets the main thread be interrupted a moment later, as a signal does."""

    def heard(*_: object) -> None:
        raise raised

    before = signal.signal(signal.SIGUSR1, heard)
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGUSR1))
    try:
        yield timer.start
    finally:
        timer.cancel()
        signal.signal(signal.SIGUSR1, before)


def test_a_run_that_is_cancelled_while_it_waits_for_its_batches_cancels_them(world: World):
    with signals(InterruptedRunError) as later, pytest.raises(InterruptedRunError):
        go(opened(world), when_started(later))
    nothing_of_it_is_left(world, FailureKind.CANCELLED)


@pytest.mark.parametrize("reports", [True, False])
@pytest.mark.parametrize("kind", [InterruptedRunError, KeyboardInterrupt])
def test_a_batch_that_commits_while_its_run_is_cancelled_is_told(
    world: World, kind: type[BaseException], *, reports: bool
):
    told: list[Event] = []
    commits = threading.Event()
    with signals(kind) as later:

        def late(*given: Any) -> Any:  # noqa: ANN401 - as the real one
            commits.set()
            if not reports:
                later()
            run.interrupted.wait()
            return commit(*given)

        def heard(event: Event) -> None:
            told.append(event)
            if isinstance(event, Started) and reports:
                commits.wait()
                raise kind

        run = opened(world, {"rows": compute, "commit": late})
        with pytest.raises(kind):
            go(run, heard)
    assert [type(event) for event in told] == [Started, Committed]


def test_ctrl_c_lets_batches_in_flight_come_to_their_end(world: World):
    def ctrl_c() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        go(opened(world, {"rows": compute}), when_started(ctrl_c))
    assert [batch.status for batch in world.store.batches.latest(model=VISITS)] == ["committed"]


def test_a_second_ctrl_c_cancels_them(world: World):
    with signals(KeyboardInterrupt) as later:

        def twice() -> None:
            later()
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            go(opened(world), when_started(twice))
    nothing_of_it_is_left(world, FailureKind.CANCELLED)


@pytest.mark.spark
def test_a_plan_that_is_stopped_at_once_cancels_its_batches_and_goes_on_after_resume(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(watching, "ASK", 0.1)
    world.land(a_source(), row(10))
    world.fill(GRAPH)
    world.land(a_source(), row(10, cost=5))
    plans = Plans(world)
    plan = plans.make(GRAPH, restate=(Restatement(VISITS),))

    def stop() -> None:
        world.effects = Effects()
        world.store.queue.control_plan(plan.plan_id, Control.CANCELLED, "ana")

    world.effects = Effects(rows=endless)
    applied = plans.apply(GRAPH, plan, listener=when_started(stop))

    assert [event.kind for event in applied.failed] == [FailureKind.CANCELLED]
    assert f"backfill resume {plan.plan_id}" in applied.failed[0].error
    assert applied.left
    assert world.store.limits.in_flight() == ()
    assert [len(values) for values in world.rows(VISITS)] == [3]
    held = plans.apply(GRAPH, plan)
    assert held.left
    assert not held.failed

    world.store.queue.control_plan(plan.plan_id, Control.RUNNING, "ana")
    done = plans.apply(GRAPH, plan)
    assert (done.status, done.left) == (PlanStatus.BUILT, {})
