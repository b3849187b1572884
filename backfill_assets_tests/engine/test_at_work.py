from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from backfill_assets.engine.project.at_work import AtWork, Phase, WorkStep
from backfill_assets.planning.plan.request import Restatement
from backfill_assets_tests.builders import a_graph, a_model, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.world import row

if TYPE_CHECKING:
    from backfill_assets_tests.engine.world import World


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_step_that_began_last_is_shown_and_the_one_around_it_again_afterwards():
    told: list[str | None] = []
    at_work = AtWork(lambda step: told.append(step.words if step else None))

    with at_work.at(Phase.BUILDING, "web.a", of=2) as batches:
        batches.next()
        with at_work.at(Phase.STARTING):
            batches.next()

    assert told == [
        "building: web.a, batch 1 of 2",
        "starting Spark",
        "starting Spark",
        "building: web.a, batch 2 of 2",
        None,
    ]


def test_a_step_over_several_models_names_each_and_how_many_there_are():
    told: list[WorkStep | None] = []
    with AtWork(told.append).at(Phase.CHECKING, of=2) as step:
        for name in ("web.a", "web.b"):
            step.next(name)

    assert [said.words if said else None for said in told] == [
        "checks: web.a, 1 of 2",
        "checks: web.b, 2 of 2",
        None,
    ]


def test_a_step_that_fails_is_at_work_no_more():
    told: list[WorkStep | None] = []
    with pytest.raises(ZeroDivisionError), AtWork(told.append).at(Phase.COMPARING, "web.a"):
        _ = 1 / 0
    assert told[-1] is None


def test_an_interrupt_while_a_step_is_told_leaves_no_step_at_work():
    told: list[WorkStep | None] = []

    def interrupted(step: WorkStep | None) -> None:
        told.append(step)
        if step is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), AtWork(interrupted).at(Phase.PUBLISHING):
        pass
    assert told[-1] is None


def test_steps_of_several_threads_end_in_any_order():
    told: list[str | None] = []
    at_work = AtWork(lambda step: told.append(step.words if step else None))
    inside, ended = threading.Event(), threading.Event()

    def start() -> None:
        with at_work.at(Phase.STARTING):
            inside.set()
            ended.wait()

    thread = threading.Thread(target=start)
    with at_work.at(Phase.BUILDING, "web.a"):
        thread.start()
        inside.wait()
    assert told[-1] == "starting Spark"
    ended.set()
    thread.join()
    assert told[-1] is None


PHASES = st.sampled_from(list(Phase))
MOVES = st.lists(st.tuples(st.one_of(st.none(), PHASES), st.floats(0, 100)), max_size=30)


@given(MOVES)
def test_the_seconds_of_all_steps_are_those_in_which_any_was_at_work(
    moves: list[tuple[Phase | None, float]],
):
    """None ends the step that began last; the seconds then pass."""
    clock = Clock()
    at_work = AtWork(clock=clock)
    open_, expected = list[object](), dict[str, float]()
    phases: list[Phase] = []
    for phase, seconds in moves:
        if phase is not None:
            step = at_work.at(phase)
            step.__enter__()
            open_.append(step)
            phases.append(phase)
        elif phases:
            open_.pop().__exit__(None, None, None)  # type: ignore[attr-defined]
            phases.pop()
        clock.now += seconds
        if phases and seconds:
            expected[phases[-1].value] = expected.get(phases[-1].value, 0.0) + seconds
    found = at_work.seconds()
    assert found.keys() <= expected.keys()
    for name, seconds in expected.items():
        assert abs(found.get(name, 0.0) - seconds) < 1e-6


def test_what_came_before_an_operation_is_not_counted_in_it():
    clock = Clock()
    at_work = AtWork(clock=clock)
    with at_work.at(Phase.LOOKING):
        clock.now += 3
    since = at_work.seconds()
    with at_work.at(Phase.LOOKING):
        clock.now += 2

    assert at_work.seconds(since) == {"looking at sources": 2.0}


def test_apply_and_promote_name_each_step_and_keep_what_it_took(world: World):
    graph = a_graph(a_model())
    told: list[str] = []
    at_work = AtWork(lambda step: told.append(step.words) if step else None)
    plans = Plans(world, given={"at_work": at_work})
    world.land(a_source(), row(7, 1, 7.0), row(8, 1, 8.0))
    world.fill(graph)
    world.land(a_source(), row(7, 1, 9.0), row(8, 1, 8.0))
    asked: Any = Restatement("web.visits", "2024-01-07", "2024-01-08")

    plan = plans.published(graph, restate=(asked,))

    assert list(dict.fromkeys(told)) == [
        f"checks: plan {plan.plan_id}",
        "looking at sources: web.events, 1 of 1",
        "building: web.visits, batch 1 of 1",
        "checks: what was built",
        "comparing: web.visits, 1 of 1",
        "publishing: waiting for its turn at the tables",
        "checks: what came meanwhile",
        "recording: the evidence",
        "publishing: web.visits, 1 of 1",
        "recording: the pointers",
    ]
    promoted, applied = world.store.plans.timings(plan.plan_id)
    assert (applied.verb, promoted.verb) == ("apply", "promote")
    assert {"looking at sources", "building", "checks"} <= applied.steps.keys()
    assert {"comparing", "publishing", "recording"} <= promoted.steps.keys()
    assert (promoted.cells, promoted.by_rows) == (2, True)
