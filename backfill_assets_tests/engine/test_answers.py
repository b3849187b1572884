"""Consumers answer to plans that change what they read, and are told of them; promotions wait for what they ask."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.automatic.late_plan import refresh_late
from backfill_assets.engine.automatic.serving import finish, serve
from backfill_assets.engine.plans import stage_run
from backfill_assets.engine.plans.operation import Operation
from backfill_assets.engine.plans.plan_verbs import promote_plan, queue_plan, rollback_plan
from backfill_assets.engine.project.channels import DeliveryError
from backfill_assets.engine.project.project import InProject
from backfill_assets.engine.review import notices as notices_module
from backfill_assets.engine.review.acting import NotEntitledError, UnsignedActError
from backfill_assets.engine.review.answers import UnansweredError, answer, answers
from backfill_assets.engine.review.approvals import approve, to_approve
from backfill_assets.engine.review.bound_parts import bound_parts
from backfill_assets.engine.review.evidence import facts_of
from backfill_assets.engine.review.notices import send_notices
from backfill_assets.engine.review.records import approvals
from backfill_assets.errors import RequestError
from backfill_assets.intervals import Daily
from backfill_assets.models.audit import accepted_range
from backfill_assets.models.consumer import Consumer, Reading
from backfill_assets.models.graph import build_graph
from backfill_assets.orchestration.follow_ups import notices_due
from backfill_assets.planning.plan.plan_json import PlanFormatError
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.review.approval import Act
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets_tests.builders import a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_canaries import dying
from backfill_assets_tests.engine.test_plans import COSTS, OLD, ROWS, VISITS, changed, costs, visits
from backfill_assets_tests.engine.world import on, row
from backfill_assets_tests.signing import quick_gate, quick_sign

if TYPE_CHECKING:
    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.notice import Notice
    from backfill_assets.snapshots.stored_plan import PlanEvent
    from backfill_assets_tests.engine.world import World

DAY = timedelta(days=1)
DORA = "dora@shop"


def consumer(name: str, **declared: Any) -> Consumer:  # noqa: ANN401
    usual: dict[str, Any] = {
        "kind": "dashboard",
        "owner": "team:web",
        "reads": [Reading(VISITS)],
        "channels": ["board"],
    }
    return Consumer(name=name, **{**usual, **declared})


def reading(*consumers: Consumer) -> Graph:
    return build_graph(OLD.models.values(), OLD.sources.values(), consumers)


@dataclass
class Post:
    """Stands for channels: keeps what is delivered, and delivers nothing while it is down."""

    told: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    down: bool = False

    def __call__(self, channel: str, title: str, text: str) -> None:
        if self.down:
            raise DeliveryError(channel, "connection refused")
        self.told.append((channel, title, text))

    @property
    def titles(self) -> list[str]:
        return [title for _, title, _ in self.told]


@pytest.fixture
def post() -> Post:
    return Post()


@pytest.fixture
def plans(world: World, post: Post) -> Plans:
    world.begin(OLD, *ROWS)
    return Plans(world, given={"deliver": post})


def built(world: World, plans: Plans, graph: Graph) -> Plan:
    """A plan that changes the cost of the 8th of January, built."""
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(graph, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    assert plans.apply(graph, plan).status is PlanStatus.BUILT
    return plan


def total(world: World) -> Any:  # noqa: ANN401
    return world.rows(COSTS, "ds", "total")[1]


def notices(world: World) -> list[Notice]:
    return world.store.notices.latest(100)


def test_a_plan_waits_for_the_acknowledgement_of_a_consumer_that_asks_for_it(
    world: World, plans: Plans
):
    graph = reading(
        consumer("board", on_change="ack"), consumer("log", reads=[Reading(COSTS)], channels=[])
    )
    plan = built(world, plans, graph)

    with pytest.raises(
        UnansweredError,
        match=r"board \(team:web\) has not acknowledged.* `backfill acknowledge \w+ board` answers for board",
    ):
        plans.promote(graph, plan)
    assert total(world) == (on(8), 8)

    answer(plans.project(graph), plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED, "told them")
    plans.promote(graph, plan)
    assert total(world) == (on(8), 99)


def test_a_plan_whose_process_dies_once_it_is_built_is_told_of_once(
    world: World, plans: Plans, post: Post, monkeypatch: pytest.MonkeyPatch
):
    graph = reading(consumer("board", on_change="notify", notice_days=2))
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    plan = plans.make(graph, restate=(Restatement(VISITS, "2024-01-08", "2024-01-08"),))
    with monkeypatch.context() as patched:
        patched.setattr(stage_run, "audit_kept", dying)
        with pytest.raises(KeyboardInterrupt):
            plans.apply(graph, plan)
    send_notices(InProject(project=plans.project(graph)))
    world.clock.now += 2 * DAY

    assert plans.apply(graph, plan).status is PlanStatus.BUILT

    assert post.titles == [f"Plan {plan.plan_id} for prod is ready"]
    plans.promote(graph, plan)  # its notice period is over since


def test_an_objection_holds_a_plan_until_it_is_taken_back_whoever_objects(
    world: World, plans: Plans
):
    graph = reading(consumer("log", channels=[]))
    plan = built(world, plans, graph)
    project = plans.project(graph)
    with pytest.raises(RequestError, match="the objection has no reason"):
        answer(project, plan.plan_id, "log", PlanEventKind.OBJECTED)
    answer(project, plan.plan_id, "log", PlanEventKind.OBJECTED, "the quarter closes")

    with pytest.raises(UnansweredError, match=r"log objected by ana on .*: the quarter closes"):
        plans.promote(graph, plan)

    answer(project, plan.plan_id, "log", PlanEventKind.ACKNOWLEDGED)
    plans.promote(graph, plan)
    assert total(world) == (on(8), 99)


def test_a_notice_period_counts_from_the_build_and_an_acknowledgement_ends_it(
    world: World, plans: Plans
):
    graph = reading(consumer("board", on_change="notify", notice_days=3))
    plan = built(world, plans, graph)
    world.clock.now += 3 * DAY - timedelta(seconds=1)
    with pytest.raises(UnansweredError, match=r"the notice period of board \(team:web\) ends on "):
        plans.promote(graph, plan)

    awaits = answers(plans.project(graph), plan.plan_id).awaits
    world.clock.now += timedelta(seconds=1)
    over = answers(plans.project(graph), plan.plan_id).awaits
    world.clock.now -= DAY
    answer(plans.project(graph), plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED)
    acknowledged = answers(plans.project(graph), plan.plan_id).awaits

    assert (len(awaits), over, acknowledged) == (1, (), ())


@pytest.mark.parametrize(
    "reads",
    [Reading(VISITS, columns=["id"]), Reading(VISITS, days_back=1), Reading(COSTS, columns=["ds"])],
    ids=["other columns", "later days", "a column of a reader that stays"],
)
def test_a_consumer_for_which_nothing_changes_is_not_asked(
    world: World, plans: Plans, reads: Reading
):
    graph = reading(consumer("board", on_change="ack", reads=[reads]))
    plan = built(world, plans, graph)
    with pytest.raises(RequestError, match="changes nothing that consumer 'board' reads"):
        answer(plans.project(graph), plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED)

    plans.promote(graph, plan)

    assert total(world) == (on(8), 99)


def test_consumers_are_told_of_late_data_that_needs_a_plan(world: World, plans: Plans, post: Post):
    graph = reading(
        consumer("board", on_change="notify"),
        consumer("trends", on_change="notify", reads=[Reading(VISITS, days_back=1)]),
    )
    refresh_late(world.open(graph))  # the first look
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    needed = refresh_late(world.open(graph)).needed
    send_notices(InProject(project=plans.project(graph)))

    assert post.titles == [f"Plan {needed} for prod is needed for late data"]
    (text,) = (text for _, _, text in post.told)
    assert text.startswith("To board (team:web).\nNeeded on ")
    assert f"{VISITS}: all columns in 2024-01-08" in text
    assert text.endswith(f"automatic refreshes do: backfill show {needed}")
    refresh_late(world.open(graph))
    send_notices(InProject(project=plans.project(graph)))
    assert len(post.told) == 1


def test_an_answer_to_an_earlier_build_does_not_count(world: World, plans: Plans):
    graph = reading(consumer("board", on_change="ack"))
    plan = built(world, plans, graph)
    answer(plans.project(graph), plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED)
    world.store.plans.tell(plan.plan_id, PlanEventKind.BUILT, who="another apply")

    with pytest.raises(UnansweredError, match="has not acknowledged"):
        plans.promote(graph, plan)


def test_only_a_built_plan_and_a_declared_consumer_are_answered_for(world: World, plans: Plans):
    graph = reading(consumer("board", on_change="ack"))
    plan = built(world, plans, graph)
    project = plans.project(graph)
    with pytest.raises(RequestError, match=r"there is no consumer 'boards'.*board"):
        answer(project, plan.plan_id, "boards", PlanEventKind.ACKNOWLEDGED)
    answer(project, plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED)
    plans.promote(graph, plan)
    with pytest.raises(RequestError, match="is promoted; expected a built plan"):
        answer(project, plan.plan_id, "board", PlanEventKind.OBJECTED, "too late")


def test_under_a_policy_the_owner_signs_and_what_the_history_says_is_not_believed(
    world: World, plans: Plans
):
    gate = quick_gate("[[rules]]\napprovers = ['bob@shop']\n", "bob@shop", DORA)
    graph = reading(consumer("board", owner=DORA, on_change="ack"))
    plan = built(world, plans, graph)

    def as_(who: str | None) -> Any:  # noqa: ANN401
        signing = {"gate": lambda: gate, "sign": quick_sign(who) if who else None}
        return plans.project(graph, **signing)

    of = to_approve(as_("bob@shop"), plan.plan_id)
    approve(of, bound_parts(of), "")
    with pytest.raises(NotEntitledError, match="bob@shop may not acknowledge"):
        answer(as_("bob@shop"), plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED)
    with pytest.raises(UnsignedActError):
        answer(as_(None), plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED)
    world.store.plans.tell(
        plan.plan_id, PlanEventKind.ACKNOWLEDGED, who=DORA, detail={"consumer": "board"}
    )
    assert answers(as_(None), plan.plan_id).awaits == ("board (dora@shop) has not acknowledged",)

    answer(as_(DORA), plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED, "fine")
    (given,) = answers(as_(None), plan.plan_id).given
    assert (given.who, given.agrees, given.reason) == (DORA, True, "fine")

    (signed,) = (
        each
        for each in world.store.approvals.of_plan(plan.plan_id)
        if each.act == Act.ACKNOWLEDGE.value
    )
    world.store.approvals.keep(replace(signed, signature="x"))
    assert len(answers(as_(None), plan.plan_id).given) == 1


def test_a_signed_objection_holds_although_what_is_bound_beside_the_build_has_changed(
    world: World, plans: Plans
):
    gate = quick_gate("[[environments]]\nname = 'prod'\npromote = ['bob@shop']\n", "bob@shop", DORA)
    graph = reading(consumer("board", owner=DORA, channels=[]))
    plan = built(world, plans, graph)

    def as_(who: str, promise_days: int) -> Project:
        project = plans.project(graph, gate=lambda: gate, sign=quick_sign(who))
        return replace(project, terms=replace(project.terms, promise_days=promise_days))

    answer(as_(DORA, 30), plan.plan_id, "board", PlanEventKind.OBJECTED, "the quarter closes")
    with pytest.raises(UnansweredError, match="board objected by dora@shop"):
        promote_plan(as_("bob@shop", 31), plan)

    answer(as_(DORA, 30), plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED)
    answer(as_(DORA, 31), plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED)
    assert promote_plan(as_("bob@shop", 31), plan).status is PlanStatus.PROMOTED
    facts = facts_of(InProject(project=as_(DORA, 31)), plan.plan_id)
    signed = json.loads(approvals(facts))["signed"]
    assert [(each["act"], each.get("void")) for each in signed] == [
        ("object", ""),
        ("acknowledge", "changed since: way back"),
        ("acknowledge", ""),
        ("promote", None),
    ]


def test_consumers_are_told_of_each_step_with_what_changes_for_them_and_what_they_are_asked(
    world: World, plans: Plans, post: Post
):
    graph = reading(consumer("board", on_change="ack"), consumer("log", channels=[]))
    plan = built(world, plans, graph)
    answer(plans.project(graph), plan.plan_id, "board", PlanEventKind.ACKNOWLEDGED)
    plans.promote(graph, plan)
    rollback_plan(plans.project(graph), plan)

    name = plan.plan_id
    assert post.titles == [
        f"Plan {name} for prod is ready",
        f"Plan {name} for prod is published",
        f"Plan {name} for prod is rolled back",
    ]
    channel, _, text = post.told[0]
    assert channel == "board"
    assert "web.visits: cost in 2024-01-08" in text
    assert (
        f'It is not published before you acknowledge it: backfill acknowledge {name} "board"'
        in text
    )
    assert "web.visits: cost in 2024-01-08; cost 8.00 before, 99.00 after" in post.told[1][2]
    assert "web.visits: cost in 2024-01-08; cost 99.00 before, 8.00 after" in post.told[2][2]
    assert all(notice.delivered_at for notice in notices(world))


@pytest.mark.parametrize(("restated", "told"), [(False, []), (True, ["ready", "published"])])
def test_cells_that_are_published_for_the_first_time_are_told_to_no_consumer(
    world: World,
    plans: Plans,
    post: Post,
    restated: bool,  # noqa: FBT001 - a parameter of the test
    told: list[str],
):
    longer = replace(OLD.models[VISITS], cadence=Daily(start="2024-01-05", end="2024-01-10"))
    models = [longer, OLD.models[COSTS]]
    board = consumer("board", on_change="notify")
    graph = build_graph(models, OLD.sources.values(), [board])
    world.land(a_source(), row(5), row(6), *changed(row(8, 1, 99.0)))
    day = (Restatement(VISITS, "2024-01-08", "2024-01-08"),)

    plan = plans.published(graph, restate=day if restated else ())
    send_notices(InProject(project=plans.project(graph)))

    assert [title.split()[-1] for title in post.titles] == told
    assert all("in 2024-01-08;" in text for _, _, text in post.told)
    rollback_plan(plans.project(graph), plan)
    assert len(post.told) == (3 if restated else 0)


def test_consumers_are_told_of_a_queued_plan_that_can_not_be_completed(
    world: World, plans: Plans, post: Post
):
    strict = build_graph(
        [visits(audits=[accepted_range("cost", None, 8)]), costs()],
        [a_source()],
        [consumer("board", on_change="notify")],
    )
    plan = plans.make(strict, restate=(Restatement(VISITS),))
    project = plans.project(strict)
    op = Operation(project=project, plan=plan)
    queue_plan(op)
    serve(op, VISITS, plan.models[0].cells)
    assert post.titles == []

    assert finish(project, plan).left

    assert post.titles == [f"Plan {plan.plan_id} for prod is not completely built"]


def test_a_channel_that_is_down_fails_no_promotion_and_is_tried_again_later(
    world: World, plans: Plans, post: Post
):
    graph = reading(consumer("board", on_change="notify"))
    post.down = True
    plan = built(world, plans, graph)
    plans.promote(graph, plan)

    assert total(world) == (on(8), 99)
    assert {(each.attempts, each.error) for each in notices(world)} == {(1, "connection refused")}
    assert notices_due(world.store, world.clock()) == ()
    world.clock.now += timedelta(minutes=1)
    assert len(notices_due(world.store, world.clock())) == 1

    post.down = False
    send_notices(InProject(project=plans.project(graph)))
    assert [title.split()[-1] for title in post.titles] == ["ready", "published"]
    assert notices_due(world.store, world.clock()) == ()


@pytest.mark.parametrize(
    "error", [PlanFormatError("another release", "plan again"), KeyError("web")]
)
@pytest.mark.parametrize("fails", ["_concerned", "_changes"])
def test_an_event_that_can_not_be_told_is_named_and_tried_again_and_holds_no_other_back(
    world: World,
    plans: Plans,
    post: Post,
    monkeypatch: pytest.MonkeyPatch,
    fails: str,
    error: Exception,
):
    graph = reading(consumer("board", on_change="notify"))
    plan = built(world, plans, graph)
    post.told.clear()
    real, run = getattr(notices_module, fails), InProject(project=plans.project(graph))

    def broken(given: InProject, about: PlanEvent | Notice) -> Any:  # noqa: ANN401
        if about.event == PlanEventKind.STOPPED:
            raise error
        return real(given, about)

    world.store.plans.tell(plan.plan_id, PlanEventKind.STOPPED, who="bob")
    world.store.plans.tell(plan.plan_id, PlanEventKind.APPROVED, who="bob")
    with monkeypatch.context() as patch:
        patch.setattr(notices_module, fails, broken)
        send_notices(run)

        assert post.titles == [f"Plan {plan.plan_id} for prod is approved"]
        assert [each.error for each in notices(world) if each.next_at] == [str(error)]
        assert notices_due(world.store, world.clock()) == ()
        world.clock.now += timedelta(minutes=1)
        assert len(notices_due(world.store, world.clock())) == 1

    send_notices(run)
    assert post.titles[1:] == [f"Plan {plan.plan_id} for prod is stopped"]
    assert all(each.delivered_at for each in notices(world))


def test_every_notice_that_is_still_to_be_delivered_is_listed(
    world: World, plans: Plans, post: Post
):
    graph = reading(consumer("board", on_change="notify"))
    post.down = True
    plan = built(world, plans, graph)
    post.down = False
    world.store.plans.tell(plan.plan_id, PlanEventKind.APPROVED, who="bob")
    send_notices(InProject(project=plans.project(graph)))

    listed = world.store.notices.latest(1)

    assert [(each.event, each.delivered_at is None) for each in listed] == [
        ("built", True),
        ("approved", False),
    ]


def test_a_notice_that_is_not_delivered_for_days_is_given_up(
    world: World, plans: Plans, post: Post
):
    graph = reading(consumer("board", on_change="notify"))
    post.down = True
    built(world, plans, graph)
    run = InProject(project=plans.project(graph))
    for _ in range(3):
        world.clock.now += DAY
        send_notices(run)

    (notice,) = notices(world)
    assert (notice.given_up, notice.attempts) == (True, 4)
    world.clock.now += DAY
    send_notices(run)
    assert notices(world) == [notice]


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (PlanEventKind.APPROVED, "is approved"),
        (PlanEventKind.STOPPED, "is stopped"),
        (PlanEventKind.STOPPED_NOW, "is stopped"),
    ],
)
def test_a_process_that_died_before_its_notices_leaves_them_to_the_next(
    world: World, plans: Plans, post: Post, event: PlanEventKind, said: str
):
    graph = reading(consumer("board", on_change="notify"))
    plan = built(world, plans, graph)
    post.told.clear()
    world.store.plans.tell(plan.plan_id, event, who="bob@shop")  # and died

    assert len(notices_due(world.store, world.clock())) == 1
    send_notices(InProject(project=plans.project(graph)))
    send_notices(InProject(project=plans.project(graph)))

    assert post.titles == [f"Plan {plan.plan_id} for prod {said}"]
