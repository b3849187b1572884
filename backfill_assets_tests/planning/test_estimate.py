from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals import IntervalSet
from backfill_assets.planning.estimate import (
    BatchFact,
    Known,
    NoBatchAtOnceError,
    Prices,
    TableSize,
    estimate,
)
from backfill_assets.planning.plan import (
    Build,
    CellWork,
    Change,
    Estimate,
    ModelPlan,
    Plan,
    PlannedBatch,
    PlannedRead,
    Why,
)
from backfill_assets.planning.request import PlanRequest
from backfill_assets_tests.builders import FIRST, day, days

FACTS = [BatchFact(10, 5, rows=50, bytes=500), BatchFact(20, 10, rows=100, bytes=1000)]
SOURCE = {"web.events": TableSize(1_000_000_000, days(1, 2, 3, 4))}


def a_plan(*models: ModelPlan) -> Plan:
    return Plan(
        plan_id="p1",
        request=PlanRequest(environment="prod"),
        environment="prod",
        protected=True,
        created_at=FIRST,
        expires_at=FIRST + timedelta(days=7),
        until=FIRST,
        seen=1,
        models=models,
    )


def building(name: str, *batches: PlannedBatch, reads: IntervalSet | None = None) -> ModelPlan:
    return ModelPlan(
        model=name,
        change=Change.UNCHANGED,
        category=None,
        build=Build.IN_PLACE,
        fingerprint="f",
        version="v",
        batches=batches,
        reads=() if reads is None else (PlannedRead("web.events", None, reads),),
    )


def a_batch(cells: int, *waits_for: tuple[str, int], certain: bool = True) -> PlannedBatch:
    return PlannedBatch(day(1, cells), cells, certain, waits_for)


def total(plan: Plan, known: Known) -> Estimate:
    found = estimate(plan, known).estimate
    assert found is not None
    return found


def test_recorded_batches_are_scaled_by_cells():
    known = Known(history={"web.a": FACTS})
    plan = estimate(a_plan(building("web.a", a_batch(20))), known)

    assert plan.models[0].estimate == plan.estimate
    assert total(plan, known) == Estimate(
        seconds=(40.0, 40.0), cost=(0.0, 0.0), bytes_read=0, rests_on="2 recorded batches"
    )


def test_nine_of_ten_batches_took_at_most_the_high_number():
    facts = [BatchFact(float(seconds), 1) for seconds in (10, 10, 10, 10, 10, 10, 10, 10, 30, 50)]
    median, high = total(a_plan(building("web.a", a_batch(1))), Known({"web.a": facts})).seconds

    assert (round(median, 6), round(high, 6)) == (10.0, 30.0)


def test_without_history_the_bytes_of_the_source_tell_by_the_share_that_is_read():
    plan = a_plan(building("web.a", a_batch(2), reads=days(1, 2)))
    found = total(plan, Known(sizes=SOURCE))

    assert found.bytes_read == 500_000_000
    assert found.seconds == (31.0, 93.0)
    assert found.rests_on == "the bytes it reads alone, no history"
    assert "neither history nor size" in total(plan, Known()).rests_on


def test_batches_side_by_side_share_the_process_but_never_beat_the_longest_chain():
    history = {"web.a": FACTS, "web.b": FACTS}
    first = building("web.a", *[a_batch(5) for _ in range(4)])
    second = building("web.b", a_batch(5, ("web.a", 3)))

    def seconds(at_once: int) -> float:
        known = Known(history=history, batches_at_once=at_once)
        return total(a_plan(first, second), known).seconds[0]

    assert [seconds(number) for number in (1, 2, 5, 99)] == [50.0, 25.0, 20.0, 20.0]


def test_cost_is_time_and_what_is_written():
    known = Known({"web.a": FACTS}, prices=Prices(hour=360.0, gigabyte=1e6))
    found = total(a_plan(building("web.a", a_batch(10))), known)
    assert found.cost == pytest.approx((2.0 + 1.0, 2.0 + 1.0))


def test_what_it_rests_on_names_models_without_history_and_conditional_cells():
    plan = a_plan(
        building("web.a", a_batch(5)),
        building("web.b", a_batch(3, certain=False), reads=days(1)),
        building("web.c", a_batch(2)),
    )
    assert total(plan, Known({"web.a": FACTS}, SOURCE)).rests_on == (
        "2 recorded batches; the bytes it reads alone, no history for web.b; "
        "nothing: neither history nor size for web.c; 3 of 10 cells only if what they read changes"
    )


def test_a_plan_that_computes_nothing_has_no_estimate():
    plan = estimate(a_plan(building("web.a")), Known())
    assert plan.estimate is plan.models[0].estimate is None


def test_at_least_one_batch_runs():
    with pytest.raises(NoBatchAtOnceError):
        estimate(a_plan(), Known(batches_at_once=0))


FACT = st.builds(
    BatchFact,
    seconds=st.floats(0.1, 1e4),
    cells=st.integers(1, 400),
    bytes=st.integers(0, 10**9),
)


@given(
    facts=st.lists(FACT, min_size=1, max_size=8),
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=5),
    more=st.integers(0, 100),
    at_once=st.integers(1, 4),
    chained=st.booleans(),
)
def test_more_cells_never_take_less(
    facts: list[BatchFact], sizes: list[int], more: int, at_once: int, *, chained: bool
):
    def found(extra: int) -> Estimate:
        batches = [
            a_batch(cells + extra, *([("web.a", number - 1)] if chained and number else ()))
            for number, cells in enumerate(sizes)
        ]
        plan = a_plan(building("web.a", *batches, reads=days(1)))
        known = Known({"web.a": facts}, SOURCE, Prices(1.0, 1.0), at_once)
        assert estimate(plan, known) == estimate(plan, known)
        return total(plan, known)

    few, many = found(0), found(more)
    assert few.seconds[0] <= few.seconds[1]
    for before, after in zip(few.seconds + few.cost, many.seconds + many.cost, strict=True):
        assert after >= before * (1 - 1e-9)


@given(st.integers(1, 4), st.integers(1, 4))
def test_more_bytes_never_take_less_without_history(one: int, other: int):
    def seconds(number: int) -> float:
        plan = a_plan(building("web.a", a_batch(4), reads=days(*range(1, number + 1))))
        return total(plan, Known(sizes=SOURCE)).seconds[0]

    few, many = sorted((one, other))
    assert seconds(few) <= seconds(many)


def test_what_is_recorded_without_computing_takes_commits_and_reads_nothing():
    plan = a_plan(
        building("web.a", a_batch(4), reads=days(1, 2, 3, 4)),
        building("web.b", a_batch(2, certain=False), reads=days(1, 2)),
    )
    work = CellWork(Why.GAP, IntervalSet.of([day(1, 4)]))
    first = replace(plan.models[0], work=(work,))
    empty = replace(plan.request, empty=True)
    plan = replace(plan, models=(first, plan.models[1]), request=empty)
    made = estimate(plan, Known(history={"web.a": FACTS}, sizes=SOURCE))
    recorded, computed = (one.estimate for one in made.models)
    assert recorded is not None
    assert computed is not None
    assert recorded.seconds[0] < FACTS[0].seconds / 2
    assert (recorded.bytes_read, recorded.rests_on) == (0, "recording without computing")
    assert computed.bytes_read > 0
