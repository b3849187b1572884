"""One scheduler over the graph: what begins when, against rules that hold for every schedule."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given, strategies as st

from backfill_assets.engine.fill import schedule
from backfill_assets.engine.fill.schedule import Needs, Piece, run_scheduled
from backfill_assets.engine.project.at_work import AtWork
from backfill_assets.engine.project.cancelling import RunningBatches
from backfill_assets.engine.project.events import (
    BatchSeconds,
    Committed,
    Event,
    Failed,
    Started,
    Waiting,
)
from backfill_assets.intervals import Daily, Interval, IntervalSet
from backfill_assets.intervals.interval import epoch_of
from backfill_assets.models.audit import References
from backfill_assets.models.cells import cells_read
from backfill_assets.models.kind import IncrementalByUniqueKey
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.plan.batching import batches
from backfill_assets_tests.builders import a_graph, a_model, a_source, day
from backfill_assets_tests.engine.world import NOW, row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from backfill_assets.engine.project.run_context import RunContext
    from backfill_assets.models.model import Model
    from backfill_assets_tests.engine.world import World

DAYS = 9
TARGET = IntervalSet.of([day(1, DAYS)])
NAMES = ("web.a", "web.b", "web.c", "web.d")


@dataclass
class Toy:
    """Models whose batches only note that they ran; it knows what every one of them reads."""

    models: dict[str, Model]
    missing: dict[str, IntervalSet]
    fails: dict[str, IntervalSet]
    done: dict[str, IntervalSet] = field(default_factory=dict[str, IntervalSet])
    tried: list[tuple[str, IntervalSet]] = field(default_factory=list[Any])
    in_flight: dict[str, int] = field(default_factory=dict[str, int])
    most: int = 0
    broken: list[str] = field(default_factory=list[str])
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.done = {name: TARGET - self.missing[name] for name in self.models}

    def lacking(self, model: Model, cells: IntervalSet) -> bool:
        """Say whether something that cells read of other models is not done."""
        for upstream in model.reads:
            theirs = self.models.get(upstream.name)
            if theirs is None or theirs is model:
                continue
            read = cells_read(model.cadence, upstream, theirs.cadence, cells, until=NOW) & TARGET
            if read - self.done[upstream.name]:
                return True
        return False

    def behind(self, model: Model, cells: IntervalSet) -> bool:
        """Say whether a model that reads its own cells lacks one before these."""
        first = cells.boundaries[0]
        return model.in_order and any(epoch_of(cell.start) < first for cell in self.gaps(model))

    def gaps(self, model: Model) -> list[Interval]:
        return [*model.cadence.cells(TARGET - self.done[model.name])]

    def runnable(self, model: Model, undecided: IntervalSet, taken: IntervalSet) -> IntervalSet:
        """Give the cells that may begin now; of a model in order, those before the first that can't."""
        found: list[Interval] = []
        for cell in self.gaps(model):
            alone = IntervalSet.of([cell])
            if alone & (undecided | taken) or self.lacking(model, alone):
                if model.in_order:
                    break
                continue
            found.append(cell)
        return IntervalSet.of(found)

    def work(
        self, run: RunContext, model: Model, piece: Piece, put: Callable[[Event], None]
    ) -> None:
        del run
        name, cells = model.name, piece.stretches
        with self.lock:
            if self.lacking(model, cells) or self.behind(model, cells):
                self.broken.append(f"{name} {cells} began too early")
            if any(name == other and cells & before for other, before in self.tried):
                self.broken.append(f"{name} {cells} began twice")
            self.tried.append((name, cells))
            self.in_flight[name] = self.in_flight.get(name, 0) + 1
            self.most = max(self.most, sum(self.in_flight.values()))
            if model.in_order and self.in_flight[name] > 1:
                self.broken.append(f"{name} is at work twice")
        put(Started(name, "", piece.stretches))
        with self.lock:
            self.in_flight[name] -= 1
            failed = bool(cells & self.fails[name])
            if not failed:
                self.done[name] |= cells
        if failed:
            put(Failed(name, "", piece.stretches, "it had to"))
        else:
            put(Committed(name, "", piece.stretches, 1, {}, (), 0, BatchSeconds()))


@dataclass
class Asked:
    """What one model of the toy needs."""

    toy: Toy
    model: Model
    target: IntervalSet = TARGET
    looks: list[IntervalSet] = field(default_factory=list[IntervalSet])

    def needs(self, undecided: IntervalSet, taken: IntervalSet) -> Needs:
        self.looks.append(undecided)
        todo = self.toy.runnable(self.model, undecided, taken)
        size = 1 if self.model.in_order else self.model.batch_size
        pieces = tuple(
            Piece(IntervalSet.of([batch]), "gap")
            for batch in batches(self.model.cadence, todo, size)
        )
        return Needs(pieces, later=undecided, more=self.model.cadence.count(undecided))


def a_run(overall: int, at_work: AtWork | None = None) -> Any:  # noqa: ANN401 - what a schedule asks of a run
    return SimpleNamespace(
        store=SimpleNamespace(limits=SimpleNamespace(by_scope=dict[str, int])),
        project=SimpleNamespace(batches_at_once=overall),
        at_work=at_work or AtWork(),
        interrupted=threading.Event(),
        flights=RunningBatches(),
        run_id="run",
    )


def told(run: Any, asked: list[Asked], work: Callable[..., None]) -> list[Event]:  # noqa: ANN401 - as above
    """Run a schedule whose batches only note that they ran."""
    with patch.object(schedule, "_run_piece", work):
        events: list[Event] = []
        run_scheduled(run, asked, events.append)
        return events


@st.composite
def toys(draw: st.DrawFn) -> Toy:
    models: dict[str, Model] = {}
    for number, name in enumerate(NAMES):
        read = draw(st.sets(st.sampled_from(NAMES[:number]))) if number else set[str]()
        own = [Upstream(name, lookback=1)] if draw(st.integers(0, 3)) == 0 else []
        upstreams = [
            Upstream(upstream, lookback=draw(st.integers(0, 2))) for upstream in sorted(read)
        ]
        models[name] = a_model(
            name,
            upstreams=[*upstreams, *own] or ["web.events"],
            cadence=Daily(start="2024-01-01"),
            batch_size=draw(st.integers(1, 4)),
            batch_concurrency=draw(st.integers(1, 3)),
        )
    cells = st.sets(st.integers(1, DAYS)).map(lambda some: IntervalSet.of(map(day, some)))
    missing = {name: draw(cells) for name in models}
    few = st.sets(st.integers(1, DAYS), max_size=2).map(lambda some: IntervalSet.of(map(day, some)))
    return Toy(models, missing, {name: draw(few) for name in models})


@given(toy=toys(), overall=st.integers(1, 4))
def test_a_batch_begins_once_what_it_reads_is_done_and_whatever_can_be_done_is(
    toy: Toy, overall: int
):
    asked = [Asked(toy, model) for model in toy.models.values()]
    events = told(a_run(overall), asked, toy.work)
    assert toy.broken == []
    assert toy.most <= overall
    tried = {name: IntervalSet.union_all(c for n, c in toy.tried if n == name) for name in NAMES}
    waits = {
        name: IntervalSet.union_all(
            event.cells for event in events if isinstance(event, Waiting) and event.model == name
        )
        for name in NAMES
    }
    for name, model in toy.models.items():
        for cell in model.cadence.cells(toy.missing[name] - tried[name]):
            alone = IntervalSet.of([cell])
            waited = toy.lacking(model, alone) or toy.behind(model, alone) or alone & waits[name]
            assert waited, f"{name} {cell} was forgotten"
        if not model.in_order:
            assert not waits[name]


def test_a_model_downstream_begins_before_the_one_upstream_has_ended():
    up = a_model("web.a", batch_size=1, batch_concurrency=1)
    down = a_model("web.b", upstreams=["web.a"], batch_size=1)
    toy = Toy(
        {"web.a": up, "web.b": down},
        {"web.a": TARGET, "web.b": TARGET},
        {"web.a": IntervalSet.empty(), "web.b": IntervalSet.empty()},
    )
    steps: list[str] = []
    at_work = AtWork(lambda step: steps.append(step.words) if step else None)
    events = told(a_run(2, at_work), [Asked(toy, up), Asked(toy, down)], toy.work)
    order = [event.model for event in events if isinstance(event, Committed)]
    assert order.count("web.a") == order.count("web.b") == DAYS
    assert order.index("web.b") < DAYS - 1
    assert "building: web.a, web.b, batch 3 of 18" in steps


@pytest.mark.parametrize(
    ("of_up", "of_down"),
    [
        ({"kind": IncrementalByUniqueKey("ds", latest_by="cost", rows_move=True)}, {}),
        ({}, {"audits": [References("known", "id", "web.a", "id")]}),
    ],
    ids=["rows move", "values are looked up in all of it"],
)
def test_a_model_waits_for_all_of_one_whose_rows_move_or_in_which_an_audit_looks_values_up(
    of_up: dict[str, Any], of_down: dict[str, Any]
):
    up = a_model("web.a", batch_size=1, batch_concurrency=1, **of_up)
    down = a_model("web.b", upstreams=["web.a"], batch_size=1, **of_down)
    none = IntervalSet.empty()
    toy = Toy(
        {"web.a": up, "web.b": down},
        {"web.a": TARGET - IntervalSet.of([day(2)]), "web.b": TARGET},
        dict.fromkeys(NAMES, none),
    )
    events = told(a_run(2), [Asked(toy, up), Asked(toy, down)], toy.work)
    order = [event.model for event in events if isinstance(event, Committed)]
    assert order == ["web.a"] * (DAYS - 1) + ["web.b"] * DAYS


def test_what_did_not_change_is_not_asked_again():
    up = a_model("web.a", batch_size=1, batch_concurrency=1)
    down = a_model("web.b", upstreams=["web.a"])
    last = a_model("web.c", upstreams=["web.b"])
    none = IntervalSet.empty()
    toy = Toy(
        {"web.a": up, "web.b": down, "web.c": last},
        dict.fromkeys(NAMES, TARGET),
        dict.fromkeys(NAMES, none),
    )
    asked = [Asked(toy, model) for model in (up, down, last)]
    told(a_run(3), asked, toy.work)
    for model_asked in asked:
        assert len(model_asked.looks) == len({*model_asked.looks}), (
            "it was asked twice about the same"
        )
    assert len(asked[0].looks) == 1


def test_a_model_of_which_a_batch_is_held_begins_nothing_more():
    up = a_model("web.a", batch_size=1, batch_concurrency=1)
    down = a_model("web.b", upstreams=["web.a"], batch_size=1)
    none = IntervalSet.empty()
    toy = Toy(
        {"web.a": up, "web.b": down}, {"web.a": TARGET, "web.b": TARGET}, dict.fromkeys(NAMES, none)
    )

    begun: list[Piece] = []

    def held(run: RunContext, model: Model, piece: Piece, put: Callable[[Event], None]) -> None:
        if model is up:
            toy.work(run, model, piece, put)
        else:
            begun.append(piece)
            put(Waiting(model.name, piece.stretches, "a plan that is paused"))

    events = told(a_run(2), [Asked(toy, up), Asked(toy, down)], held)
    waits = [event.cells for event in events if isinstance(event, Waiting)]
    assert IntervalSet.union_all(waits) == TARGET
    assert toy.done == {"web.a": TARGET, "web.b": none}
    assert len(begun) == 1
    assert {event.waits_for for event in events if isinstance(event, Waiting)} == {
        "a plan that is paused"
    }


def told_at_once(run: Any, asked: list[Asked], toy: Toy) -> list[int]:  # noqa: ANN401 - as above
    """Run a schedule whose batches have ended when its next turn begins; count those in flight as each begins."""
    in_flight: list[int] = []

    @contextmanager
    def at_once(run: RunContext) -> Iterator[Any]:
        def begin(lane: Any, piece: Piece, events: Any) -> None:  # noqa: ANN401
            in_flight.append(len(lane.flying))
            toy.work(run, lane.model, piece, lambda event: events.put((lane, event)))
            done: Future[None] = Future()
            done.set_result(None)
            events.put((lane, schedule._Ended(piece, done)))

        yield begin

    with patch.object(schedule, "_threads", at_once):
        run_scheduled(run, asked, lambda _: None)
    return in_flight


def test_a_model_whose_batches_have_ended_is_named_no_more():
    models = [a_model(name) for name in NAMES[:2]]
    none = IntervalSet.empty()
    toy = Toy(
        {model.name: model for model in models},
        dict.fromkeys(NAMES, TARGET),
        dict.fromkeys(NAMES, none),
    )
    steps: list[str] = []
    at_work = AtWork(lambda step: steps.append(step.words) if step else None)

    told_at_once(a_run(2, at_work), [Asked(toy, model) for model in models], toy)

    assert steps == [
        "building: web.a, batch 1 of 1",
        "building: web.a, web.b, batch 2 of 2",
        "building: web.b, batch 2 of 2",
    ]


@pytest.mark.parametrize(("scope", "others"), [("model:web.a", {}), ("all", {"model:web.a": 9})])
def test_a_run_makes_room_for_more_batches_when_a_limit_is_raised_and_for_fewer_when_it_is_lowered(
    scope: str, others: dict[str, int]
):
    model, none = a_model("web.a", batch_size=1), IntervalSet.empty()
    toy = Toy({"web.a": model}, {"web.a": TARGET}, {"web.a": none})
    run = a_run(9)
    set_to = iter((1, 3, 2, *[1] * DAYS))
    run.store.limits.by_scope = lambda: {**others, scope: next(set_to)}
    in_flight = told_at_once(run, [Asked(toy, model)], toy)
    assert in_flight[:4] == [1, 1, 2, 3]
    assert in_flight[4:] == [1] * (DAYS - 4)


def test_models_are_filled_side_by_side_and_hold_what_they_hold_one_after_the_other(world: World):
    visits = a_model(batch_size=2, batch_concurrency=1)
    sums = a_model("web.sums", upstreams=["web.visits"], batch_size=2)
    graph = a_graph(visits, sums, sources=[a_source()])
    world.land(a_source(), *(row(number) for number in range(1, 11)))
    world.fill(graph)
    built = [event for event in world.heard if isinstance(event, Started | Committed)]
    first = next(n for n, event in enumerate(built) if event.model == "web.sums")
    assert any(
        isinstance(event, Started) and event.model == "web.visits" for event in built[first:]
    ), "one model waited for the whole of the other"
    assert world.rows("web.sums") == world.rows("web.visits")
    assert sum(isinstance(event, Committed) for event in built) == 10
