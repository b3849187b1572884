"""The life of a plan from the launchpad: what each job does, shows and refuses."""

from __future__ import annotations

import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Never

import dagster as dg
import pyarrow as pa
import pytest
import sqlalchemy as sa
from deltalake import write_deltalake

from backfill_assets import Consumer, Reading, build_definitions
from backfill_assets.engine.plans.moving import ConcurrentPublicationError
from backfill_assets.engine.plans.outcome import Outcome
from backfill_assets.engine.project.holds import hold_consumer
from backfill_assets.engine.review.evidence import EvidenceNotWrittenError
from backfill_assets.engine.review.results import register_result
from backfill_assets.errors import BackfillAssetsError, RequestError
from backfill_assets.intervals import Daily, Hourly, Weekly
from backfill_assets.intervals.instants import minute_text
from backfill_assets.models.cells_by_model import CellsByModel
from backfill_assets.models.graph import build_graph
from backfill_assets.orchestration import jobs, resources
from backfill_assets.orchestration.follow_ups import promotions_due
from backfill_assets.orchestration.released_runs import op_name
from backfill_assets.orchestration.resources import StateResource
from backfill_assets.orchestration.switches import lacking
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.planning.plan.request import PlanRequest, Restatement
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.snapshots.plan_check import PlanCheck
from backfill_assets.snapshots.queued_plan import Control
from backfill_assets.snapshots.stored_plan import PlanEventKind, PlanStatus
from backfill_assets.state.database import StateBusyError
from backfill_assets.state.tables import PLANS
from backfill_assets.warehouse.spark.session import MissingJarsError
from backfill_assets_tests.builders import a_model, a_source, day, days
from backfill_assets_tests.engine.queue_world import QueueWorld
from backfill_assets_tests.making import plan_made
from backfill_assets_tests.orchestration.shop import NoSpark, failed_with, failure, shown

TEN_DAYS = Daily(start="2024-01-01", end="2024-01-10")
VISITS = a_model("web.visits", cadence=TEN_DAYS)
SUMS = a_model("web.sums", cadence=TEN_DAYS, upstreams=["web.visits"])


READER = Consumer(
    name="yearly accounts",
    kind="export",
    owner="team:finance",
    reads=[Reading("web.visits")],
    on_change="ack",
)


class Launchpad:
    """Jobs over a world of two models that are filled."""

    def __init__(self, root: Path, *consumers: Consumer) -> None:
        self.world = QueueWorld.of(root, VISITS, SUMS, now=datetime.now(UTC))
        self.world.fill("web.visits", day(1, 10))
        self.world.fill("web.sums", day(1, 10))
        self.instance = dg.DagsterInstance.ephemeral(str(root))
        self.defs = build_definitions(
            models=[VISITS, SUMS], sources=[a_source()], consumers=consumers
        )

    def launch(self, job: str, **config: Any) -> dg.ExecuteInProcessResult:  # noqa: ANN401
        """Launch a job; no job here may start Spark."""
        return self.defs.resolve_job_def(job).execute_in_process(
            run_config={"ops": {op_name(job): {"config": config}}},
            resources={
                "backfill_spark": NoSpark(spark_config={}),
                "backfill_state": StateResource(),
            },
            instance=self.instance,
            raise_on_error=False,
        )

    def requested(self, request: dg.RunRequest) -> dg.ExecuteInProcessResult:
        """Run what the sensor requests."""
        assert request.job_name is not None
        return self.defs.resolve_job_def(request.job_name).execute_in_process(
            run_config=request.run_config,
            tags=dict(request.tags),
            resources={
                "backfill_spark": NoSpark(spark_config={}),
                "backfill_state": StateResource(),
            },
            instance=self.instance,
            raise_on_error=False,
        )

    def planned(self) -> str:
        """Plan to build a day again, and give the plan's id."""
        wrong = [{"name": "web.visits", "first": "2024-01-03", "last": "2024-01-03"}]
        return str(shown(self.launch("plan", restate=wrong, reason="wrong"))["plan_id"])


@pytest.fixture
def launchpad(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Launchpad:
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path))
    return Launchpad(tmp_path)


def test_a_plan_is_shown_with_its_estimate_on_the_page_of_its_run_which_carries_its_name(
    launchpad: Launchpad,
):
    result = launchpad.launch(
        "plan", restate=[{"name": "web.visits", "first": "2024-01-03"}], reason="sent twice"
    )

    assert result.success
    told = shown(result)
    assert f"## Plan `{told['plan_id']}` for `prod` (protected)" in told["plan"]
    assert "sent twice" in told["plan"]
    assert "; rests on " in told["plan"]
    assert told["status"] == "proposed"
    assert f"backfill apply {told['plan_id']}" in told["next"]
    run = launchpad.instance.get_run_by_id(result.run_id)
    assert run is not None
    assert run.tags["backfill/plan"] == told["plan_id"]


def test_a_plan_with_nothing_to_do_says_so(launchpad: Launchpad):
    result = launchpad.launch("plan")

    assert result.success
    assert shown(result)["plan"] == "nothing to do"


def test_a_run_that_can_not_build_its_plan_shows_the_plan_and_what_is_left_all_the_same(
    launchpad: Launchpad,
):
    plan = launchpad.planned()

    result = launchpad.launch("apply", plan=plan)

    assert f"plan {plan} is not completely built; cells still to build: web.visits" in failure(
        result
    )
    told = failed_with(result)
    assert f"## Plan `{plan}` for `prod`" in told["plan"]
    assert told["left"] == {"web.visits": "2024-01-03"}


def test_a_plan_of_the_launchpad_may_begin_an_environment(launchpad: Launchpad):
    wrong = [{"name": "web.visits", "first": "2024-01-03"}]
    plan = str(shown(launchpad.launch("plan", environment="dev_ann", restate=wrong))["plan_id"])
    store = launchpad.world.store
    assert [environment.name for environment in store.environments.by_name()] == ["prod"]

    assert launchpad.launch("apply", plan=plan, queue=True).success

    made = store.environments.get("dev_ann")
    assert (made.follows, made.protected) == ("prod", False)
    assert made.expires_at is not None


def test_what_cannot_be_asked_fails_the_run_with_the_reason(launchpad: Launchpad):
    result = launchpad.launch("plan", restate=[{"name": "web.nobody"}])

    assert not result.success
    assert "web.nobody" in failure(result)


def test_a_plan_is_queued_paused_resumed_and_stopped(launchpad: Launchpad):
    plan, store = launchpad.planned(), launchpad.world.store

    assert launchpad.launch("apply", plan=plan, queue=True, off_peak="22:00-06:00 UTC").success
    [queued] = store.queue.queued_plans()
    assert (queued.plan_id, queued.off_peak) == (plan, "22:00-06:00 UTC")
    assert store.plans.get(plan).status is PlanStatus.APPLYING

    assert launchpad.launch("pause", plan=plan, who="ann", reason="month's close").success
    assert store.queue.control_of(plan) is Control.PAUSED
    assert launchpad.launch("resume", plan=plan).success
    assert store.queue.control_of(plan) is Control.RUNNING
    assert launchpad.launch("stop", plan=plan, now=True).success
    assert store.queue.control_of(plan) is Control.CANCELLED
    told = [(event.event, event.who, event.why) for event in store.plans.events(plan)]
    assert ("paused", "unknown, through a command of Dagster (typed: ann)", "month's close") in told


def test_the_page_of_a_run_names_the_next_step_as_the_command_does(launchpad: Launchpad):
    plan, store = launchpad.planned(), launchpad.world.store
    paused = shown(launchpad.launch("pause", plan=plan))
    assert paused["next"] == f"backfill resume {plan}, or backfill abandon {plan}"
    launchpad.launch("resume", plan=plan)
    store.plans.set_plan_status(plan, PlanStatus.PROPOSED, PlanStatus.BUILT)
    store.checks.keep(plan, [PlanCheck("web.visits", "sums", passed=False, text="found 3 rows")])

    told = shown(launchpad.launch("promote", plan=plan, at="Sun 03:00"))

    accept = f"backfill accept {plan} web.visits sums --reason TEXT"
    assert told["next"] == f"backfill diff {plan}, or {accept}, or backfill abandon {plan}"


@pytest.mark.parametrize(
    ("status", "left"), [("proposed", "backfill plan"), ("built", "backfill abandon {}")]
)
def test_the_page_of_a_run_names_nothing_that_the_age_of_a_plan_forbids(
    launchpad: Launchpad, monkeypatch: pytest.MonkeyPatch, status: str, left: str
):
    plan, store = launchpad.planned(), launchpad.world.store
    if status == "built":
        store.plans.set_plan_status(plan, PlanStatus.PROPOSED, PlanStatus.BUILT)
    later = datetime.now(UTC) + timedelta(days=8)
    monkeypatch.setattr(resources, "now", lambda: later)

    told = shown(launchpad.launch("pause", plan=plan))

    assert told["next"] == left.format(plan)


def test_a_plan_that_is_stopped_twice_says_so(launchpad: Launchpad):
    plan = launchpad.planned()
    launchpad.launch("apply", plan=plan, queue=True)
    assert launchpad.launch("stop", plan=plan).success

    again = launchpad.launch("stop", plan=plan)

    assert not again.success
    assert "stopped" in failure(again)


def test_a_plan_is_given_up(launchpad: Launchpad):
    plan = launchpad.planned()

    assert launchpad.launch("abandon", plan=plan, reason="not needed").success
    assert launchpad.world.store.plans.get(plan).status is PlanStatus.ABANDONED


def test_a_plan_that_can_not_be_read_any_more_is_given_up_as_by_the_command(launchpad: Launchpad):
    plan, store = launchpad.planned(), launchpad.world.store
    of_another_release = sa.update(PLANS).values(content="{}")
    store.plans._database.write(lambda connection: connection.execute(of_another_release))

    result = launchpad.launch("abandon", plan=plan)

    assert shown(result)["status"] == "abandoned"


def test_a_plan_that_is_promoted_already_is_told_of_as_by_the_command(launchpad: Launchpad):
    plan, store = launchpad.planned(), launchpad.world.store
    store.plans.set_plan_status(plan, PlanStatus.PROPOSED, PlanStatus.PROMOTED)
    promoted = store.plans.tell(plan, PlanEventKind.PROMOTED, who="ann")

    result = launchpad.launch("promote", plan=plan, who="bob")

    done = f"nothing to do: it was promoted on {minute_text(promoted.at)} by ann"
    assert shown(result)["promotion"] == done
    late = launchpad.launch("promote", plan=plan, who="bob", at="Sun 03:00")
    assert f"plan {plan} is promoted already, so --at 'Sun 03:00' has no effect" in failure(late)


def test_a_plans_page_says_whom_it_does_not_touch_and_what_it_may_invalidate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path))
    launchpad = Launchpad(tmp_path, READER)
    loaded = Loaded.of(build_graph([VISITS, SUMS], [a_source()], [READER]))
    project = replace(launchpad.world.project(), loaded=loaded)
    hold_consumer(project, READER.name, "prod", until=None, reason="the books close")
    wanted = ("first quarter", "web.visits", days(3))
    register_result(project, "prod", wanted, "", "signed off", rerun=False)
    wrong = [{"name": "web.visits", "first": "2024-01-03", "last": "2024-01-03"}]

    page = str(shown(launchpad.launch("plan", restate=wrong))["plan"])

    assert "### Not touched\n\n- yearly accounts, held on " in page
    assert "### May invalidate\n\n- first quarter, which rests on web.visits 2024-01-03" in page


def test_where_a_later_plan_can_not_be_rolled_back_the_run_names_those_that_are(
    launchpad: Launchpad, monkeypatch: pytest.MonkeyPatch
):
    first, second = launchpad.planned(), launchpad.planned()
    plan = read_plan(launchpad.world.store.plans.get(first).content)
    rolled_back = iter([Outcome(PlanStatus.ROLLED_BACK)])

    def roll_back(*_: object, **__: object) -> Outcome:
        for done in rolled_back:
            return done
        raise RequestError(found="its files are gone")

    monkeypatch.setattr("backfill_assets.orchestration.jobs.rollback_plan", roll_back)
    monkeypatch.setattr(
        "backfill_assets.orchestration.jobs.promoted_after", lambda *_: (plan, plan)
    )
    result = launchpad.launch("rollback", to=second)

    assert "its files are gone" in failure(result)
    assert failed_with(result)["rolled_back"] == first


def test_an_unknown_plan_is_named(launchpad: Launchpad):
    result = launchpad.launch("promote", plan="p0000000000")

    assert not result.success
    assert "p0000000000" in failure(result)


def test_the_launchpad_promotes_nothing_protected_where_operators_are_named_whatever_is_typed(
    launchpad: Launchpad, monkeypatch: pytest.MonkeyPatch
):
    plan = launchpad.planned()
    monkeypatch.setenv("BACKFILL_OPERATORS", "ann,bob")

    result = launchpad.launch("promote", plan=plan, who="ann")

    assert not result.success
    assert "unknown, through a command of Dagster (typed: ann) may not change prod" in failure(
        result
    )


def test_only_operators_apply_a_plan_that_restates_what_other_environments_read(
    launchpad: Launchpad, monkeypatch: pytest.MonkeyPatch
):
    world = launchpad.world
    request = PlanRequest(
        environment="prod",
        asked_by="eve",
        restate=(Restatement("web.visits", "2024-01-03", "2024-01-03"),),
        restate_all_snapshots=True,
    )
    plan = plan_made(
        world.store, world.graph, request, clock=lambda: world.now, data_root=world.root
    )
    monkeypatch.setenv("BACKFILL_OPERATORS", "ann,bob")

    result = launchpad.launch("apply", plan=plan.plan_id, who="eve", queue=True)

    assert "(typed: eve) may not change prod" in failure(result)
    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROPOSED
    monkeypatch.delenv("BACKFILL_OPERATORS")
    assert launchpad.launch("apply", plan=plan.plan_id, who="ann", queue=True).success


def test_a_plan_that_is_not_built_is_not_promoted_and_the_run_lists_what_is_left(
    launchpad: Launchpad,
):
    plan = launchpad.planned()
    launchpad.launch("apply", plan=plan, queue=True)
    for pointer in launchpad.world.store.environments.pointers("prod").values():
        for _ in range(launchpad.world.store.versions.known_head(pointer.version) + 1):
            rows = pa.table({"id": [1]})
            write_deltalake(
                launchpad.world.store.versions.version_path(pointer.version), rows, mode="append"
            )

    result = launchpad.launch("promote", plan=plan)

    assert not result.success
    assert "web.visits" in failure(result)


def test_a_promotion_waits_for_the_answer_of_a_consumer_as_that_of_the_command_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path))
    launchpad = Launchpad(tmp_path, READER)
    store, plan_id = launchpad.world.store, launchpad.planned()
    launchpad.launch("apply", plan=plan_id, queue=True)
    plan = read_plan(store.plans.get(plan_id).content)
    for name in ("web.visits", "web.sums"):
        launchpad.world.fill(name, day(3), rows=12, plan=plan)
    store.plans.set_plan_status(plan_id, PlanStatus.APPLYING, PlanStatus.BUILT)

    result = launchpad.launch("promote", plan=plan_id)

    assert "yearly accounts (team:finance) has not acknowledged" in failure(result)


def test_a_promotion_whose_appointment_was_taken_back_while_its_run_waited_publishes_nothing(
    launchpad: Launchpad,
):
    plan, store = launchpad.planned(), launchpad.world.store
    store.plans.set_plan_status(plan, PlanStatus.PROPOSED, PlanStatus.BUILT)
    store.plans.tell(
        plan, PlanEventKind.APPOINTED, who="ann", detail={"at": "2024-01-01T03:00:00+00:00"}
    )
    (request,) = promotions_due(launchpad.instance, store, datetime.now(UTC))
    launchpad.launch("promote", plan=plan, at="never", who="ann")

    ran = launchpad.requested(request)

    assert ran.success
    assert "nothing was published" in str(shown(ran)["appointment"])
    assert store.plans.get(plan).status is PlanStatus.BUILT


def test_a_promotion_at_its_time_is_requested_until_a_run_has_come_to_it(launchpad: Launchpad):
    plan, store, instance = launchpad.planned(), launchpad.world.store, launchpad.instance
    store.plans.set_plan_status(plan, PlanStatus.PROPOSED, PlanStatus.BUILT)
    at = {"at": "2024-01-01T03:00:00+00:00"}
    store.plans.tell(plan, PlanEventKind.APPOINTED, who="ann", detail=at)

    def due(minutes: int = 0) -> list[dg.RunRequest]:
        return [*promotions_due(instance, store, datetime.now(UTC) + timedelta(minutes=minutes))]

    def run(request: dg.RunRequest, status: dg.DagsterRunStatus) -> None:
        job = launchpad.defs.resolve_job_def("promote")
        instance.create_run_for_job(
            job, run_config=request.run_config, tags=dict(request.tags), status=status
        )

    (first,) = due()
    run(first, dg.DagsterRunStatus.FAILURE)  # it died before it began
    (second,) = due()
    assert second.run_key != first.run_key
    run(second, dg.DagsterRunStatus.FAILURE)
    assert due() == []
    (third,) = due(minutes=2)
    run(third, dg.DagsterRunStatus.STARTED)
    assert due(minutes=2) == []

    store.plans.tell(plan, PlanEventKind.APPOINTED, who="ann", detail=at)
    (moved,) = due()
    run(moved, dg.DagsterRunStatus.CANCELED)
    assert due(minutes=2) == []


def test_hours_without_the_queue_build_nothing(launchpad: Launchpad):
    result = launchpad.launch("apply", plan=launchpad.planned(), off_peak="22:00-06:00 UTC")

    assert "off_peak is for plans in the queue, nothing was built" in failure(result)


@pytest.mark.parametrize("refusal", [None, RequestError(found="cost would change by 9%")])
def test_canaries_that_are_built_are_told_of_with_what_would_be_refused(
    launchpad: Launchpad, monkeypatch: pytest.MonkeyPatch, refusal: RequestError | None
):
    built = CellsByModel({"web.visits": days(3)})
    done = Outcome(PlanStatus.APPLYING, left=built, canaries=built, refusal=refusal)
    monkeypatch.setattr("backfill_assets.orchestration.jobs.apply_plan", lambda *_: done)

    result = launchpad.launch("apply", plan=launchpad.planned())

    if refusal is None:
        assert "compare them" in str(shown(result)["canaries"])
    else:
        assert "the canaries are built: cost would change by 9%" in failure(result)


def test_partitions_that_are_cut_otherwise_than_what_is_published_are_not_built(
    launchpad: Launchpad,
):
    weekly = replace(VISITS, cadence=Weekly(start="2024-01-01", end="2024-01-28"))
    defs = build_definitions(models=[weekly], sources=[a_source()])

    result = dg.materialize(
        [defs.resolve_assets_def(dg.AssetKey(["web", "visits"]))],
        partition_key="2024-01-01",
        instance=launchpad.instance,
        raise_on_error=False,
    )

    assert "has other partitions than the cells that prod publishes" in failure(result)


def test_hours_whose_keys_are_those_of_another_zone_than_what_is_published_are_not_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path))
    hours = Hourly(start="2024-01-01", end="2024-01-10")
    visits = a_model("web.visits", cadence=hours, upstreams=[])
    world = QueueWorld.of(tmp_path, visits, now=datetime.now(UTC))
    world.fill("web.visits", hours.cell("2024-01-03-00:00"))
    berlin = Hourly(start="2024-01-01", end="2024-01-10", tz="Europe/Berlin")
    defs = build_definitions(models=[replace(visits, cadence=berlin)], sources=[])

    result = dg.materialize(
        [defs.resolve_assets_def(dg.AssetKey(["web", "visits"]))],
        partition_key="2024-01-03-05:00",
        raise_on_error=False,
    )

    assert "has other partitions than the cells that prod publishes" in failure(result)


def test_definitions_that_lack_consumers_of_their_catalog_are_refused(
    launchpad: Launchpad, monkeypatch: pytest.MonkeyPatch
):
    catalog = SimpleNamespace(CONSUMERS=[READER])
    monkeypatch.setitem(sys.modules, "shop.catalog", catalog)
    monkeypatch.setenv("BACKFILL_CATALOG", "shop.catalog")

    said = failure(launchpad.launch("plan"))

    assert "lack consumers that shop.catalog declares: yearly accounts" in said
    assert "give build_definitions also consumers=CONSUMERS" in said


def test_a_queue_that_nobody_works_on_is_told_of(tmp_path: Path):
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        said = list(lacking(instance))

    assert any("gap_fill_sensor is off" in line for line in said)
    assert any("no daemon" in line for line in said)


@pytest.mark.parametrize("named", [{}, {"plan": "p0000000000", "to": "p1111111111"}])
def test_a_rollback_names_a_plan_or_where_to_go_back_to(
    launchpad: Launchpad, named: dict[str, str]
):
    result = launchpad.launch("rollback", **named)

    assert not result.success
    assert "or in `to` the one to go back to; one of the two" in failure(result)


@pytest.mark.parametrize(
    ("job", "named"), [("rollback", "plan"), ("rollback", "to"), ("undo", "plan")]
)
def test_what_was_never_promoted_is_not_taken_back(launchpad: Launchpad, job: str, named: str):
    plan = launchpad.planned()

    result = launchpad.launch(job, **{named: plan})

    assert not result.success
    assert plan in failure(result)
    assert launchpad.world.store.plans.get(plan).status is PlanStatus.PROPOSED


@pytest.mark.parametrize(
    ("job", "named"), [("rollback", "plan"), ("rollback", "to"), ("undo", "plan")]
)
def test_the_launchpad_takes_nothing_protected_back_where_operators_are_named(
    launchpad: Launchpad, monkeypatch: pytest.MonkeyPatch, job: str, named: str
):
    plan = launchpad.planned()
    monkeypatch.setenv("BACKFILL_OPERATORS", "ann,bob")

    result = launchpad.launch(job, **{named: plan}, who="ann")

    assert "(typed: ann) may not change prod" in failure(result)


def test_an_appointment_that_can_not_be_kept_fails_its_run_and_the_plans_history_says_why(
    launchpad: Launchpad,
):
    plan, store = launchpad.planned(), launchpad.world.store
    store.plans.set_plan_status(plan, PlanStatus.PROPOSED, PlanStatus.BUILT)

    asked = launchpad.launch("promote", plan=plan, at="03:00", reason="at night")
    assert str(shown(asked)["appointment"]).startswith("is to be promoted on ")
    store.plans.tell(
        plan, PlanEventKind.APPOINTED, who="ann", detail={"at": "2024-01-01T03:00:00+00:00"}
    )
    kept = launchpad.launch("promote", plan=plan, who="sensor")

    assert "nothing was published" in failure(kept)
    (*_, before, last) = [each for each in store.plans.events(plan) if "appoint" in each.event]
    assert (before.event, last.event) == ("appointed", "appointment ended")
    assert "nothing was published" in last.why


@pytest.mark.parametrize(
    "error",
    [
        StateBusyError("state.db", 1),
        EvidenceNotWrittenError("p1", "evidence", OSError(28, "No space left on device"), "then"),
        ConcurrentPublicationError("p1", "prod"),
        MissingJarsError(Path("jars")),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_appointment_stays_where_what_is_in_the_way_may_pass(
    launchpad: Launchpad, monkeypatch: pytest.MonkeyPatch, error: BackfillAssetsError
):
    plan, store = launchpad.planned(), launchpad.world.store
    store.plans.set_plan_status(plan, PlanStatus.PROPOSED, PlanStatus.BUILT)
    at = {"at": "2024-01-01T03:00:00+00:00"}
    store.plans.tell(plan, PlanEventKind.APPOINTED, who="ann", detail=at)
    (request,) = promotions_due(launchpad.instance, store, datetime.now(UTC))

    def held_up(*_: object) -> Never:
        raise error

    monkeypatch.setattr(jobs, "promote_plan", held_up)
    assert str(error) in failure(launchpad.requested(request))

    (again,) = promotions_due(launchpad.instance, store, datetime.now(UTC))
    assert again.run_key != request.run_key
