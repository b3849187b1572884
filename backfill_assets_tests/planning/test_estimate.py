from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from backfill_assets.errors import RequestError
from backfill_assets.intervals import IntervalSet
from backfill_assets.planning.plan.estimate import (
    BatchFact,
    Known,
    Prices,
    TableSize,
    estimate,
)
from backfill_assets.planning.plan.overhead import (
    OperationFact,
    Overhead,
    by_rows,
    cold_seconds,
    overhead,
    slowness,
)
from backfill_assets.planning.plan.plan import (
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
from backfill_assets.planning.plan.request import PlanRequest, Strategy
from backfill_assets.snapshots.timing import APPLY, PROMOTE, RUN
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


def of_batches(plan: Plan, known: Known) -> tuple[float, float]:
    """What is left of the whole without start and promotion."""
    beside, (median, high) = overhead(plan, known.operations), total(plan, known).seconds
    return (
        median - beside.start[0] - beside.promotion[0],
        high - beside.start[1] - beside.promotion[1],
    )


def test_recorded_batches_are_scaled_by_cells():
    known = Known(history={"web.a": FACTS})
    plan = estimate(a_plan(building("web.a", a_batch(20))), known)

    assert plan.models[0].estimate == Estimate(
        seconds=(40.0, 40.0),
        cost=(0.0, 0.0),
        bytes_read=0,
        rests_on="2 recorded batches",
        batches=40.0,
    )
    assert of_batches(plan, known) == pytest.approx((40.0, 40.0))


def test_nine_of_ten_batches_took_at_most_the_high_number():
    facts = [BatchFact(float(seconds), 1) for seconds in (10, 10, 10, 10, 10, 10, 10, 10, 30, 50)]
    median, high = of_batches(a_plan(building("web.a", a_batch(1))), Known({"web.a": facts}))

    assert (round(median, 6), round(high, 6)) == (10.0, 30.0)


def test_without_history_the_bytes_of_the_source_tell_by_the_share_that_is_read():
    plan = a_plan(building("web.a", a_batch(2), reads=days(1, 2)))
    found = total(plan, Known(sizes=SOURCE))

    assert found.bytes_read == 500_000_000
    assert of_batches(plan, Known(sizes=SOURCE)) == pytest.approx((14.5, 43.5))
    assert found.rests_on == (
        "the bytes it reads alone, no history; start and promotion: constants, no history"
    )
    assert "neither history nor size" in total(plan, Known()).rests_on


def test_a_chain_of_batches_keeps_one_thread_and_leaves_the_others_free():
    history = {"web.a": FACTS, "web.b": FACTS}
    chain = building("web.a", *[a_batch(5, *([("web.a", n - 1)] if n else [])) for n in range(6)])
    beside = building("web.b", *[a_batch(5) for _ in range(6)])
    known = Known(history=history, batches_at_once=2)
    assert total(a_plan(chain, beside), known).batches == 60.0


def test_batches_share_the_process_and_wait_for_what_they_read():
    history = {"web.a": FACTS, "web.b": FACTS}
    first = building("web.a", *[a_batch(5) for _ in range(4)])
    second = building("web.b", a_batch(5, ("web.a", 3)))

    def seconds(at_once: int) -> float:
        known = Known(history=history, batches_at_once=at_once)
        return total(a_plan(first, second), known).batches

    assert [seconds(number) for number in (1, 2, 5, 99)] == [50.0, 30.0, 20.0, 20.0]


def test_cost_is_time_and_what_is_written():
    known = Known({"web.a": FACTS}, prices=Prices(hour=360.0, gigabyte=1e6, currency="CHF"))
    found = total(a_plan(building("web.a", a_batch(10))), known)
    median, high = (seconds / 10 for seconds in found.seconds)
    assert found.batches == 20.0
    assert found.cost == pytest.approx((median + 1.0, high + 1.0))
    assert found.currency == "CHF"


def test_what_it_rests_on_names_models_without_history_and_conditional_cells():
    plan = a_plan(
        building("web.a", a_batch(5)),
        building("web.b", a_batch(3, certain=False), reads=days(1)),
        building("web.c", a_batch(2)),
    )
    before = (OperationFact(RUN, starting=5.0), OperationFact(APPLY))
    assert total(plan, Known({"web.a": FACTS}, SOURCE, operations=before)).rests_on == (
        "2 recorded batches; the bytes it reads alone, no history for web.b; "
        "nothing: neither history nor size for web.c; 3 of 10 cells only if what they read changes; "
        "start and promotion: 2 operations before"
    )


def test_a_plan_that_computes_nothing_has_no_estimate():
    plan = estimate(a_plan(building("web.a")), Known())
    assert plan.estimate is plan.models[0].estimate is None


def test_at_least_one_batch_runs():
    with pytest.raises(RequestError, match="batches may run at once, but a plan needs at"):
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
def test_more_bytes_never_take_less_without_history(day_count: int, other: int):
    def seconds(number: int) -> float:
        plan = a_plan(building("web.a", a_batch(4), reads=days(*range(1, number + 1))))
        return total(plan, Known(sizes=SOURCE)).seconds[0]

    few, many = sorted((day_count, other))
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
    recorded, computed = (model.estimate for model in made.models)
    assert recorded is not None
    assert computed is not None
    assert recorded.seconds[0] < FACTS[0].seconds / 2
    assert (recorded.bytes_read, recorded.rests_on) == (0, "recording without computing")
    assert computed.bytes_read > 0


def test_the_estimate_is_its_start_its_batches_and_its_promotion():
    found = total(a_plan(building("web.a", a_batch(10))), Known(history={"web.a": FACTS}))

    assert found.start > 0
    assert found.promotion > 0
    assert found.seconds[0] == pytest.approx(found.start + found.batches + found.promotion)


def test_the_first_batch_of_a_process_is_no_measure_of_those_after_it():
    warm = [BatchFact(10, 5), BatchFact(20, 10)]
    cold = BatchFact(25, 5, cold=True)
    plan = a_plan(building("web.a", a_batch(5)))

    def batches(*facts: BatchFact) -> float:
        return total(plan, Known(history={"web.a": facts})).batches

    assert batches(*warm, cold) == batches(*warm) == pytest.approx(10.0)
    assert batches(cold) == pytest.approx(
        25.0 - cold_seconds(())
    )  # what is slow of it is counted with the start


def test_what_earlier_plans_took_beside_their_batches_counts_instead_of_the_constants():
    plan = a_plan(building("web.a", a_batch(10)))
    apply_ = OperationFact(APPLY, starting=8.0, looking=3.0, rest=2.0, cells=10, by_rows=True)
    twice = replace(apply_, verb=PROMOTE, rest=60.0)
    none, known = overhead(plan, ()), overhead(plan, (apply_, twice))

    assert slowness((apply_, twice)) == slowness((replace(apply_, verb=RUN),)) == 2.0
    # so all that is not learned is taken to be twice
    assert known.start[0] - none.start[0] == pytest.approx(1.0 + 4.0 + 2.75 + 6.0)
    bigger = a_plan(building("web.a", a_batch(20)))
    assert overhead(bigger, (apply_, twice)).promotion[0] == pytest.approx(
        known.promotion[0] + (60.0 + 2.0) / 2  # half of it by its cells
    )


def test_a_plan_that_moves_pointers_alone_is_promoted_sooner_than_one_that_copies():
    moved = building("web.a", a_batch(10))
    moved = replace(moved, build=Build.NEW_VERSION, strategy=Strategy.FULL_REBUILD)
    copied = replace(moved, build=Build.IN_PLACE)
    compared = replace(moved, strategy=Strategy.COLUMN_ENRICHMENT)

    assert [by_rows(a_plan(model)) for model in (moved, copied, compared)] == [False, True, True]
    assert overhead(a_plan(moved), ()).promotion < overhead(a_plan(copied), ()).promotion


def test_cells_that_are_recorded_empty_start_no_spark():
    plan = a_plan(building("web.a", a_batch(10)))
    empty = replace(plan, request=replace(plan.request, empty=True))
    assert overhead(empty, ()).start[0] < overhead(plan, ()).start[0] / 4


def test_gaps_are_filled_where_they_are_read_and_an_unprotected_environment_at_once():
    gaps = a_plan(replace(building("web.a", a_batch(10)), build=Build.GAP_FILL))
    plan = a_plan(building("web.a", a_batch(10)))
    open_ = replace(plan, protected=False)

    by_plan = [overhead(made_plan, ()).promotion[0] for made_plan in (gaps, open_, plan)]
    assert by_plan == sorted(set(by_plan))


OPERATION = st.builds(
    OperationFact,
    verb=st.sampled_from((RUN, APPLY, PROMOTE)),
    starting=st.one_of(st.just(0.0), st.floats(0.1, 100.0)),
    looking=st.floats(0, 100),
    rest=st.floats(0, 1000),
    cells=st.integers(0, 1000),
    by_rows=st.booleans(),
)
PLANS = st.builds(
    lambda models, protected: replace(a_plan(*models), protected=protected),
    models=st.lists(
        st.builds(
            lambda number, build, strategy, cells: replace(
                building(f"web.m{number}", *map(a_batch, cells), reads=days(1)),
                build=build,
                strategy=strategy,
            ),
            number=st.integers(0, 10**6),
            build=st.sampled_from(Build),
            strategy=st.one_of(st.none(), st.sampled_from(Strategy)),
            cells=st.lists(st.integers(1, 400), min_size=1, max_size=3),
        ),
        min_size=1,
        max_size=4,
        unique_by=lambda model: model.model,
    ),
    protected=st.booleans(),
)


@given(PLANS, st.lists(OPERATION, max_size=6), st.lists(FACT, max_size=4))
def test_an_estimate_is_never_below_any_of_its_parts(
    plan: Plan, operations: list[OperationFact], facts: list[BatchFact]
):
    history = {planned.model: facts for planned in plan.models}
    known = Known(history, SOURCE, operations=operations)
    found, beside = total(plan, known), overhead(plan, operations)
    parts = (found.start, found.batches, found.promotion)

    assert min(parts) >= 0
    assert found.seconds[0] == pytest.approx(sum(parts))
    assert found.seconds[1] >= found.seconds[0] * (1 - 1e-9)
    assert isinstance(beside, Overhead)
    assert (found.start, found.promotion) == (beside.start[0], beside.promotion[0])
    for model in estimate(plan, known).models:
        assert model.estimate is not None
        assert model.estimate.seconds[0] <= found.seconds[0] * (1 + 1e-9)


@given(PLANS, st.lists(OPERATION, max_size=6), st.integers(1, 400))
def test_one_more_batch_never_makes_start_or_promotion_shorter(
    plan: Plan, operations: list[OperationFact], cells: int
):
    first, *others = plan.models
    longer = replace(first, batches=(*first.batches, a_batch(cells)))
    more = replace(plan, models=(longer, *others))
    few, many = overhead(plan, operations), overhead(more, operations)

    assert many.start == few.start
    assert many.promotion[0] >= few.promotion[0] * (1 - 1e-9)
    assert many.promotion[1] >= few.promotion[1] * (1 - 1e-9)
