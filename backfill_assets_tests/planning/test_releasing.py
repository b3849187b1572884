"""What the queue releases: laws over any offers and any room, and a few plain facts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from backfill_assets.intervals import Daily, Interval, IntervalSet
from backfill_assets.models.upstream import Upstream
from backfill_assets.planning.queue.releasing import (
    FIRST as AHEAD,
    Offer,
    Release,
    ReleaseKind,
    Room,
    offers,
    portion,
    releases,
)
from backfill_assets.planning.rule.needs_work import Work
from backfill_assets_tests.builders import FIRST, a_model, a_whole, day, days

DAYS = 12
NOW = FIRST + timedelta(days=DAYS)
MODELS = [a_model(f"web.m{number}") for number in range(4)]
PROD, PLANS = "prod", [None, "p1", "p2"]

cells = st.sets(st.integers(1, DAYS), min_size=1).map(lambda found: days(*found))


@st.composite
def offered(draw: st.DrawFn) -> Offer:
    kind = draw(st.sampled_from(ReleaseKind))
    if kind in (ReleaseKind.LATE, ReleaseKind.FINISH):
        return Offer(PROD, kind, plan_id=draw(st.sampled_from(PLANS)))
    plan = draw(st.sampled_from(PLANS[1:])) if kind is ReleaseKind.PLAN else None
    size = draw(st.sampled_from([1, 2, 3, None]))
    return Offer(PROD, kind, draw(st.sampled_from(MODELS)), draw(cells), plan, size=size)


@st.composite
def rooms(draw: st.DrawFn) -> Room:
    under_way = [
        Release(offer.environment, offer.kind, offer.name, offer.cells, offer.plan_id)
        for offer in draw(st.lists(offered(), max_size=3))
    ]
    return Room(
        places=draw(st.integers(0, 6)),
        share=draw(st.integers(0, 3)),
        batches=draw(st.integers(1, 3)),
        under_way=tuple(under_way),
        busy=draw(st.frozensets(st.sampled_from([model.name for model in MODELS]), max_size=2)),
    )


some = st.lists(offered(), max_size=8)


@given(some, rooms())
def test_what_is_released_fits_into_the_room_one_run_per_model_and_only_what_was_offered(
    given_: list[Offer], room: Room
):
    found = releases(given_, room)

    assert len(found) <= room.free
    names = Counter(release.model for release in found if release.model)
    assert max(names.values(), default=0) <= 1
    assert not names.keys() & (room.busy | {release.model for release in room.under_way})
    for released in found:
        assert any(
            (released.kind, released.model, released.plan_id, released.environment)
            == (offer.kind, offer.name, offer.plan_id, offer.environment)
            and not released.cells - offer.cells
            and bool(released.cells) == bool(offer.cells)
            for offer in given_
        )


@given(some, rooms())
def test_the_same_offers_in_the_same_room_release_the_same(given_: list[Offer], room: Room):
    assert releases(given_, room) == releases([*given_], replace(room))


@given(some, rooms())
def test_backfills_and_plans_get_their_share_while_they_have_work_for_models_of_their_own(
    given_: list[Offer], room: Room
):
    found = releases(given_, room)

    free = [offer for offer in given_ if is_free(offer, room)]
    daily = {offer.name for offer in free if offer.kind in AHEAD}
    own = {offer.name for offer in free if offer.kind not in AHEAD} - daily
    there = sum(release.kind not in AHEAD for release in room.under_way)
    got = sum(release.kind not in AHEAD for release in found)
    assert got >= min(room.share - there, room.places - 1 - there, len(own), room.free)


@given(some, rooms())
def test_nothing_but_the_share_goes_before_daily_work(given_: list[Offer], room: Room):
    found = releases(given_, room)

    got = [release for release in found if release.kind not in AHEAD]
    told = {(release.kind, release.model, release.plan_id) for release in found}
    names = {release.model for release in found}
    waiting = [
        offer
        for offer in given_
        if offer.kind in AHEAD
        and is_free(offer, room)
        and (offer.kind, offer.name, offer.plan_id) not in told
        and offer.name not in names - {""}
    ]
    if waiting:
        assert len(got) <= room.share


@given(some, rooms().filter(lambda room: room.places > len(room.under_way)))
def test_all_that_is_ready_is_released_sooner_or_later(given_: list[Offer], room: Room):
    left = [offer for offer in given_ if is_free(offer, room)]
    rounds = 0
    while left:
        found = releases(left, room)
        assert found, "there is room and work, and nothing is released"
        left = [
            remaining
            for remaining in (after(offer, found) for offer in left)
            if remaining is not None
        ]
        rounds += 1
        assert rounds <= DAYS * len(given_) + 1


def is_free(offer: Offer, room: Room) -> bool:
    return offer.name not in room.busy | {way.model for way in room.under_way if way.model}


def after(offer: Offer, done: tuple[Release, ...]) -> Offer | None:
    """What is left of an offer when runs have built what was released."""
    for release in done:
        if (release.kind, release.model, release.plan_id) == (
            offer.kind,
            offer.name,
            offer.plan_id,
        ):
            if offer.model is None:
                return None
            left = offer.cells - release.cells
            return replace(offer, cells=left) if left else None
    return offer


@given(cells, cells, cells, st.booleans(), st.booleans())
def test_nothing_is_offered_that_waits_is_held_or_is_ready_and_no_cell_twice(
    ready: IntervalSet,
    blocked: IntervalSet,
    held: IntervalSet,
    in_plan: bool,  # noqa: FBT001
    in_order: bool,  # noqa: FBT001
):
    model = a_model(upstreams=["web.events", "web.visits"] if in_order else ["web.events"])
    whole = IntervalSet.of([day(1, DAYS)])
    gaps = whole - ready
    work = Work(whole, ready, gaps, blocked={"web.events": blocked & gaps})

    found = list(offers(PROD, model, work, held=held, plan_id="p1" if in_plan else None))

    told = IntervalSet.union_all(offer.cells for offer in found)
    assert not told & (ready | held | blocked)
    assert told.seconds() == sum(offer.cells.seconds() for offer in found)
    if in_order:
        left = gaps - told
        assert not told or not left or told.boundaries[-1] <= left.boundaries[0]
    else:
        assert told == gaps - held - blocked


@pytest.mark.parametrize(("held", "offered"), [((), (3, 4, 5, 6)), ((5,), (3, 4)), ((3,), ())])
def test_of_what_reads_itself_all_is_offered_up_to_the_first_cell_that_can_not_be_built(
    held: tuple[int, ...], offered: tuple[int, ...]
):
    model = a_model(upstreams=["web.events", Upstream("web.visits", lookback=1)])
    work = Work(days(*range(1, 7)), days(1, 2), days(3, 4, 5, 6))

    found = [offer.cells for offer in offers(PROD, model, work, held=days(*held))]

    assert model.in_order
    assert found == ([days(*offered)] if offered else [])


def test_cells_after_the_last_ready_one_are_daily_work_and_the_others_are_a_backfill():
    model = a_model()
    ready = days(3, 4)
    work = Work(days(*range(1, 8)), ready, days(1, 2, 5, 6, 7))

    daily, backfill = offers(PROD, model, work, held=days(6))

    assert (daily.kind, daily.cells) == (ReleaseKind.DAILY, days(5, 7))
    assert (backfill.kind, backfill.cells) == (ReleaseKind.BACKFILL, days(1, 2))


def test_cells_that_are_refreshed_are_daily_work_however_old():
    work = Work(days(1, 2, 3), days(2, 3), days(1), refresh=days(2))

    daily, backfill = offers(PROD, a_model(), work, held=IntervalSet.empty())

    assert (daily.kind, daily.cells) == (ReleaseKind.DAILY, days(2))
    assert (backfill.kind, backfill.cells) == (ReleaseKind.BACKFILL, days(1))


def test_a_model_of_which_nothing_is_ready_is_a_backfill_altogether():
    work = Work(days(1, 2), IntervalSet.empty(), days(1, 2))

    [backfill] = offers(PROD, a_model(), work, held=IntervalSet.empty())

    assert backfill.kind is ReleaseKind.BACKFILL


def test_of_a_plan_only_its_own_cells_are_offered():
    work = Work(days(1, 2, 3), days(1), days(2, 3), refresh=days(1))

    [plan] = offers(PROD, a_model(), work, held=IntervalSet.empty(), within=days(1, 2), plan_id="p")

    assert (plan.kind, plan.cells, plan.plan_id) == (ReleaseKind.PLAN, days(1, 2), "p")


def test_a_release_has_the_cells_of_as_many_batches_as_the_room_says():
    offer = Offer(PROD, ReleaseKind.DAILY, MODELS[0], days(*range(1, 10)), size=2)

    [release] = releases([offer], Room(places=1, batches=2))

    assert release.cells == days(1, 2, 3, 4)


def test_a_model_whose_backfill_takes_a_kept_place_gets_no_daily_run_beside_it():
    kinds = (ReleaseKind.DAILY, ReleaseKind.BACKFILL)
    given_ = [Offer(PROD, kind, model, days(1)) for kind in kinds for model in MODELS[:2]]

    found = releases(given_, Room(places=3, share=2))

    assert [(release.kind, release.model) for release in found] == [
        (ReleaseKind.DAILY, "web.m0"),
        (ReleaseKind.BACKFILL, "web.m1"),
    ]


def test_a_run_that_is_of_no_model_is_released_once():
    [release] = releases([Offer(PROD, ReleaseKind.LATE)], Room(places=3))
    assert release.kind is ReleaseKind.LATE


def test_the_next_place_is_of_the_backfill_or_plan_that_has_fewest_and_daily_work_does_not_count():
    backfill = Offer(PROD, ReleaseKind.BACKFILL, MODELS[0], days(1))
    plan = Offer(PROD, ReleaseKind.PLAN, MODELS[1], days(1), "p1")

    def chosen(under_way: ReleaseKind) -> list[str]:
        release = Release(PROD, under_way, "web.m3", days(2), None)
        room = Room(places=2, share=2, under_way=(release,))
        return [release.model for release in releases([backfill, plan], room)]

    assert chosen(ReleaseKind.DAILY) == ["web.m0"]
    assert chosen(ReleaseKind.BACKFILL) == ["web.m1"]


def test_a_release_takes_as_many_cells_as_its_batches_hold_and_near_gaps_together():
    model = a_model()

    assert portion(model, days(*range(1, 10)), 2, 2) == days(1, 2, 3, 4)
    assert portion(model, days(1, 3, 4, 6, 9), 2, 2) == days(1, 3, 4, 6)
    assert portion(model, days(1, 9), 2, 2) == days(1)  # too far: what lies between is not run over


def test_a_release_of_batches_that_hold_more_cells_than_time_has_takes_all():
    assert portion(a_model(), days(1, 3, 9), 10**12, 2) == days(1, 3, 9)


def test_where_batches_have_any_number_of_cells_one_stretch_is_released():
    assert portion(a_model(), days(1, 2, 3, 5), None, 1) == days(1, 2, 3)


def test_a_model_that_is_one_cell_is_released_as_it_is():
    whole = a_whole("web.shops").cadence.cells(IntervalSet.of([day(1)]))

    single = IntervalSet.of(whole)

    assert portion(a_whole("web.shops"), single, None, 3) == single


def test_a_stretch_that_begins_in_the_middle_of_local_days_keeps_whole_cells():
    model = a_model(cadence=Daily(start="2024-03-29", tz="Europe/Berlin"))
    span = Interval(model.cadence.start, model.cadence.shift(model.cadence.start, 5))  # type: ignore[arg-type]

    taken = portion(model, IntervalSet.of([span]), 2, 2)

    assert model.cadence.count(taken) == 4
    assert model.cadence.snap_in(taken) == taken


def test_the_share_of_backfills_is_queued_before_daily_work_can_pass_it_and_the_rest_behind():
    room = Room(places=3, share=1, batches=1)
    given_ = [Offer(PROD, ReleaseKind.BACKFILL, model, days(1)) for model in MODELS]

    found = releases(given_, room)

    assert [release.priority > 0 for release in found] == [True, False, False]


def test_plans_and_the_backfill_take_turns():
    offered_ = [
        *(Offer(PROD, ReleaseKind.BACKFILL, model, days(1)) for model in MODELS[:3]),
        Offer("plan:p", ReleaseKind.PLAN, MODELS[3], days(1), "p"),
    ]

    found = releases(offered_, Room(places=2))

    assert [release.plan_id for release in found] == [None, "p"]


def test_with_a_single_place_daily_work_goes_first():
    offered_ = [
        Offer(PROD, ReleaseKind.BACKFILL, MODELS[0], days(1)),
        Offer(PROD, ReleaseKind.DAILY, MODELS[1], days(9)),
    ]

    [release] = releases(offered_, Room(places=1))

    assert release.kind is ReleaseKind.DAILY


def test_the_share_goes_to_models_that_wait_for_no_daily_work_of_their_own():
    both, other = MODELS[0], MODELS[1]
    offered_ = [
        *(Offer(PROD, ReleaseKind.DAILY, model, days(9)) for model in (MODELS[2], MODELS[3], both)),
        Offer(PROD, ReleaseKind.BACKFILL, both, days(1)),
        Offer(PROD, ReleaseKind.BACKFILL, other, days(1)),
    ]

    found = releases(offered_, Room(places=2))

    assert [(release.kind, release.model) for release in found] == [
        (ReleaseKind.DAILY, MODELS[2].name),
        (ReleaseKind.BACKFILL, other.name),
    ]


def test_where_one_run_at_a_time_is_allowed_daily_work_and_backfills_alternate():
    always = [
        Offer(PROD, kind, model, days(1, 2, 3))
        for kind, model in zip(
            [ReleaseKind.DAILY, ReleaseKind.DAILY, ReleaseKind.BACKFILL, ReleaseKind.BACKFILL],
            MODELS,
            strict=True,
        )
    ]
    queue: list[Release] = []
    ran: list[ReleaseKind] = []
    for _ in range(10):
        # As many wait as run: two places.
        queue += releases(always, Room(places=2, share=1, under_way=tuple(queue)))
        queue.sort(
            key=lambda release: -release.priority
        )  # stable: equals in the order in which they came
        ran.append(queue.pop(0).kind)

    assert ran == [ReleaseKind.DAILY, ReleaseKind.BACKFILL] * 5
