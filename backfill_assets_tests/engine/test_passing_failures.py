"""What passes by itself: the batch is tried again, each attempt with its own row and error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.batch import sources
from backfill_assets.engine.batch.commit_turn import record
from backfill_assets.engine.batch.effects import Effects, commit
from backfill_assets.engine.project.batch_policy import BatchPolicy
from backfill_assets.engine.project.events import Committed, Failed, Skipped, TryingAgain
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.source import WhenEmpty
from backfill_assets.snapshots.failure import FailureKind
from backfill_assets.snapshots.slots import ALL
from backfill_assets.state.database import StateCommitUnknownError, StateUnavailableError
from backfill_assets.warehouse.rows.inputs import compute
from backfill_assets_tests.builders import a_graph, a_model, a_source, day
from backfill_assets_tests.engine.world import ended, kept, row

if TYPE_CHECKING:
    from collections.abc import Callable

    from backfill_assets.engine.project.events import Event
    from backfill_assets.snapshots.batch import BatchRequest, OpenBatch
    from backfill_assets_tests.engine.world import World

VISITS = "web.visits"
GRAPH = a_graph(a_model(cadence=Daily(start="2024-01-09"), batch_size=1))
GONE = StateUnavailableError("state.db", "connection refused")


def failing(real: Callable[..., Any], error: Exception, times: int = 1) -> Callable[..., Any]:
    """Do as the real one, but for the first times."""
    left = [error] * times

    def called(*given: Any, **named: Any) -> Any:  # noqa: ANN401
        if left:
            raise left.pop()
        return real(*given, **named)

    return called


UNSEEN = a_graph(GRAPH.model(VISITS), sources=[a_source(observed=False, when_empty=WhenEmpty.WAIT)])
"""Its source is not observed, so whether it has rows is asked of Spark before each run."""


def rows(world: World) -> list[tuple[Any, ...]]:
    """What every batch did, in the order in which they began."""
    listed = sorted(world.store.batches.latest(model=VISITS), key=lambda batch: batch.built_at)
    return [
        (batch.stretches.span().start.day, batch.attempt, batch.status, batch.failure)
        for batch in listed
    ]


@pytest.fixture
def filled(world: World) -> Callable[[], tuple[Event, ...]]:
    world.land(a_source(), row(9), row(10))

    def fill() -> tuple[Event, ...]:
        return world.fill(GRAPH)[VISITS]

    return fill


@pytest.mark.parametrize(
    "error",
    [
        ConnectionRefusedError(111, "Connection refused"),
        RuntimeError("[DELTA_CONCURRENT_APPEND] a conflict"),
        OSError(28, "No space left on device"),
        GONE,
    ],
    ids=["spark", "conflict", "disk", "database"],
)
def test_a_batch_that_something_passing_has_failed_is_tried_again_with_a_row_of_its_own(
    world: World, filled: Callable[[], Any], error: Exception
):
    world.effects = Effects(rows=failing(compute, error))
    events = filled()
    assert len(ended(events, Committed)) == 2
    assert ended(events, Failed) == []
    (again,) = ended(world.heard, TryingAgain)
    assert (again.attempt, again.limit, again.cells.span()) == (2, 3, day(9))
    assert rows(world) == [
        (9, 1, "failed", FailureKind.TRANSIENT),
        (9, 2, "committed", None),
        (10, 1, "committed", None),
    ]
    lost = world.store.batches.latest(model=VISITS)[-1]
    assert lost.error == again.error
    assert world.rows(VISITS) == kept(row(9), row(10))


def test_one_that_fails_every_time_ends_after_the_last_attempt_and_the_others_go_on(
    world: World, filled: Callable[[], Any]
):
    gone = ConnectionRefusedError(111, "Connection refused")
    world.effects = Effects(rows=failing(compute, gone, times=3))
    events = filled()
    (failed,) = ended(events, Failed)
    assert (failed.kind, failed.cells.span()) == (FailureKind.TRANSIENT, day(9))
    assert len(ended(events, Committed)) == 1
    assert [attempt[1:3] for attempt in rows(world) if attempt[0] == 9] == [
        (n, "failed") for n in (1, 2, 3)
    ]
    assert all(batch.error for batch in world.store.batches.latest(model=VISITS) if batch.failure)
    assert world.store.limits.in_flight() == ()


def test_what_an_audit_or_the_query_has_failed_is_tried_once(world: World):
    sql = (
        "SELECT ds, id, CAST(cost / (10 - DAY(ds)) AS DECIMAL(18,2)) AS cost FROM web.events "
        "WHERE ds >= :start_ds AND ds < :end_ds"
    )
    cadence, audits = Daily(start="2024-01-09"), [accepted_range("cost", None, 0)]
    world.land(a_source(), row(9), row(10))
    world.fill(a_graph(a_model(sql=sql, cadence=cadence, batch_size=1, audits=audits)))
    assert rows(world) == [
        (9, 1, "failed", FailureKind.AUDIT),
        (10, 1, "failed", FailureKind.CODE),
    ]
    assert ended(world.heard, TryingAgain) == []


def test_a_database_that_goes_between_commit_and_record_loses_nothing_and_doubles_nothing(
    world: World, filled: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
):
    world.effects = Effects(record=failing(record, GONE))
    monkeypatch.setattr(
        world.store.batches, "fail_batch", failing(world.store.batches.fail_batch, GONE)
    )
    events = filled()
    assert ended(events, Failed) == []
    (found,) = ended(events, Skipped)  # its own commit, which the next attempt found in the log
    assert list(found.built_by) == [day(9)]
    (again,) = ended(world.heard, TryingAgain)
    assert "could not be recorded" in again.error
    assert world.ready(GRAPH, VISITS) == "2024-01-09..2024-01-10 (2)"
    assert world.rows(VISITS) == kept(row(9), row(10))
    assert world.store.limits.in_flight() == ()


def test_a_failure_that_the_state_could_not_be_told_of_is_told_later_and_gives_its_slot_back(
    world: World, filled: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
):
    world.store.limits.set_limit(ALL, 1, "ann")
    monkeypatch.setattr(type(world.store), "lease_seconds", 0.3)  # so that a heartbeat comes soon
    world.effects = Effects(rows=failing(compute, ValueError("the query is wrong")))
    monkeypatch.setattr(
        world.store.batches, "fail_batch", failing(world.store.batches.fail_batch, GONE, times=2)
    )

    events = filled()

    (failed,) = ended(events, Failed)
    assert "could not be recorded" in failed.error
    assert len(ended(events, Committed)) == 1  # it waited for the slot of the one that failed
    assert rows(world) == [(9, 1, "failed", FailureKind.CODE), (10, 1, "committed", None)]
    assert world.store.limits.in_flight() == ()


@pytest.mark.parametrize("opened", [True, False])
def test_a_batch_whose_opening_was_not_answered_gives_its_slot_back(
    world: World,
    filled: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
    opened: bool,  # noqa: FBT001 - a parameter of the test
):
    world.store.limits.set_limit(ALL, 1, "ann")
    world.batch_policy = BatchPolicy(attempts=1)
    real = world.store.batches.open_batch

    def open_batch(request: BatchRequest) -> OpenBatch:
        if request.cells != (day(9),):
            return real(request)
        if opened:
            real(request)
        raise StateCommitUnknownError("state.db", "the server closed the connection")

    monkeypatch.setattr(world.store.batches, "open_batch", open_batch)

    events = filled()

    (failed,) = ended(events, Failed)
    assert "It is not known whether that step was recorded" in failed.error
    assert len(ended(events, Committed)) == 1
    ends = [(9, 1, "failed", FailureKind.TRANSIENT)] * opened
    assert rows(world) == [*ends, (10, 1, "committed", None)]
    assert world.store.limits.in_flight() == ()


def test_a_commit_that_another_writer_came_before_is_computed_anew(
    world: World, filled: Callable[[], Any]
):
    conflict = RuntimeError("[DELTA_CONCURRENT_WRITE] a conflict")
    world.effects = Effects(commit=failing(commit, conflict))
    assert len(ended(filled(), Committed)) == 2
    assert world.rows(VISITS) == kept(row(9), row(10))


def test_spark_that_is_lost_while_sources_are_looked_at_does_not_end_the_run(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    world.land(a_source(), row(9), row(10))
    gone = ConnectionRefusedError(111, "Connection refused")
    lost = failing(sources.cells_with_rows, gone, times=2)
    monkeypatch.setattr(sources, "cells_with_rows", lost)
    assert len(ended(world.fill(UNSEEN)[VISITS], Committed)) == 2


def test_spark_that_stays_lost_there_fails_the_cells_with_one_sentence(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    world.land(a_source(), row(9), row(10))
    gone = ConnectionRefusedError(111, "Connection refused")
    monkeypatch.setattr(sources, "cells_with_rows", failing(compute, gone, times=3))
    (failed,) = ended(world.fill(UNSEEN)[VISITS], Failed)
    assert failed.kind is FailureKind.TRANSIENT
    assert "Spark was lost" in failed.error
