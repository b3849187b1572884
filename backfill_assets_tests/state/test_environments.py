from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from backfill_assets.errors import RequestError
from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.snapshots.environment import PROD, Environment, Pointer
from backfill_assets.snapshots.failure import FailedStart, FailureKind
from backfill_assets.snapshots.result import Result
from backfill_assets.state.environments import UnknownEnvironmentError
from backfill_assets.state.published_audits import AuditedPublication
from backfill_assets_tests.state.building import NOON, Asked, add_model, fill, owe
from backfill_assets_tests.state.publishing import Trial, cells

if TYPE_CHECKING:
    from backfill_assets.state.store import Store
    from backfill_assets_tests.state.building import Clock

DEV = Environment("dev_ada", protected=False, follows="prod", expires_at=NOON + timedelta(days=9))


def test_an_environment_is_kept_with_all_that_is_said_of_it(store: Store):
    store.environments.save_environment(DEV)
    assert store.environments.get("dev_ada") == DEV
    assert store.environments.by_name() == [DEV, Environment("prod", protected=True)]
    with pytest.raises(UnknownEnvironmentError):
        store.environments.get("dev_bob")


def test_an_environment_that_follows_another_reads_what_that_one_reads_now(store: Store):
    store.environments.save_environment(DEV)
    fill(store, Asked(start=0, end=3))
    assert store.environments.pointers("dev_ada") == store.environments.pointers("prod")
    assert store.environments.own_pointers("dev_ada") == {}

    fill(store, Asked(start=3, end=6))
    view = store.views.of("dev_ada")
    assert view.ready("orders") == cells((0, 6))
    assert view.models["orders"].own == cells()
    assert view.models["orders"].pointer.environment == "prod"


def test_its_own_pointers_go_first_and_nobody_else_sees_them(store: Store):
    add_model(store, "revenue")
    store.environments.save_environment(DEV)
    trial = Trial(store, environment="dev_ada")
    trial.new_version("orders")
    trial.open()
    trial.fill("orders", 0, 2)
    trial.promote()

    found = store.environments.pointers("dev_ada")
    assert found["orders"] == Pointer("dev_ada", "orders", "print-orders__v2", "orders__v2", 0)
    assert found["revenue"].environment == "prod"
    assert store.environments.pointers("prod")["orders"].version == "orders__v1"
    assert store.views.of("dev_ada").models["orders"].own == cells((0, 2))


def test_following_goes_on_through_the_one_that_is_followed(store: Store):
    store.environments.save_environment(DEV)
    store.environments.save_environment(Environment("dev_bob", protected=False, follows="dev_ada"))
    fill(store, Asked())
    assert store.views.of("dev_bob").ready("orders") == cells((0, 3))


def test_a_first_pointer_is_not_made_where_one_is_followed(store: Store):
    store.environments.save_environment(DEV)
    wanted = Pointer("dev_ada", "orders", "other", "orders__v9", -1)
    assert store.environments.ensure_pointer(wanted, "/data/orders__v9").environment == "prod"
    assert store.environments.own_pointers("dev_ada") == {}


def test_a_pointer_that_was_never_filled_gives_way_and_one_of_use_stays(store: Store):
    store.environments.save_environment(Environment("alone", protected=False))
    for model, environment in (
        ("clicks", PROD),
        ("views", PROD),
        ("shared", PROD),
        ("shared", "alone"),
    ):
        at = Pointer(environment, model, "p", f"{model}__v1", -1)
        store.environments.ensure_pointer(at, f"/data/{model}__v1")
    store.batches.open_batch(Asked("views", 0, 1).request)
    fill(store, Asked())
    trial = Trial(store)
    trial.new_version("planned", "planned__v1")
    trial.open()
    trial.promote()
    assert store.environments.never_filled(PROD) == {"clicks"}

    for model in ("clicks", "views", "orders", "shared", "planned"):
        wanted = Pointer(PROD, model, "mended", f"{model}__v2", -1)
        store.environments.ensure_pointer(wanted, f"/data/{model}__v2")
    named = {name: at.version for name, at in store.environments.pointers(PROD).items()}
    stay = {name: f"{name}__v1" for name in ("orders", "planned", "shared", "views")}
    assert named == {"clicks": "clicks__v2", **stay}


def test_an_environment_is_none_of_what_one_of_its_name_was_before(store: Store):
    store.environments.save_environment(DEV)
    failed = FailedStart(
        "orders", cells((0, 3)), "no table", FailureKind.INPUT, "run-1", "ann", NOON
    )
    audited = AuditedPublication("dev_ada", "orders", "orders__v1", 0, cells((0, 3)))
    found = AuditResult("unique", Severity.BLOCKING, passed=False, found="2", allowed="0")
    result = Result(
        environment="dev_ada", name="report", model="orders", cells=cells((0, 3)), version="orders__v1", plan_id="",
        delta_version=0, rerun=True, who="ann", at=NOON, reason="",
    )  # fmt: skip
    store.failed_starts.keep("dev_ada", failed)
    store.published_audits.keep(audited, [found])
    store.results.register(result)

    store.environments.drop_environment("dev_ada")
    store.environments.save_environment(DEV)

    assert store.failed_starts.of_environment("dev_ada") == {}
    assert store.published_audits.history("dev_ada", "orders") == []
    assert store.results.of_environment("dev_ada") == []


def test_an_environment_lives_while_a_batch_is_at_work_there(store: Store, clock: Clock):
    store.environments.save_environment(DEV)
    week = timedelta(days=7)
    assert store.environments.expirations(week) == {"dev_ada": DEV.expires_at}
    at = Pointer("dev_ada", "clicks", "p", "clicks__v1", -1)
    store.environments.ensure_pointer(at, "/data/clicks__v1")
    assert store.environments.expirations(week) == {"dev_ada": DEV.expires_at}
    clock.pass_by(timedelta(days=20).total_seconds())
    assert store.environments.expirations(week)["dev_ada"] < clock()

    opened = store.batches.open_batch(Asked("clicks", 0, 1, environment="dev_ada").request)
    clock.pass_by(60)
    store.batches.heartbeat(opened.request.run_id)
    until = store.environments.expirations(week)["dev_ada"]
    assert until == clock() + week


def test_what_others_need_is_not_dropped(store: Store):
    store.environments.save_environment(DEV)
    store.environments.save_environment(Environment("dev_bob", protected=False, follows="dev_ada"))

    with pytest.raises(RequestError, match="can't be dropped: it is protected"):
        store.environments.drop_environment("prod")
    with pytest.raises(RequestError, match="dev_bob follow it"):
        store.environments.drop_environment("dev_ada")
    store.environments.drop_environment("dev_bob")
    store.environments.drop_environment("dev_ada")
    assert [each.name for each in store.environments.by_name()] == ["prod"]


def test_a_workspace_is_dropped_with_its_plan_alone(store: Store):
    plan = Trial(store)
    version = plan.in_place("orders")
    plan.open()
    with pytest.raises(RequestError, match="abandon or promote its open plans first"):
        store.environments.drop_environment(plan.workspace)
    assert store.versions.owner(version) == plan.workspace
    assert list(store.environments.own_pointers(plan.workspace)) == ["orders"]


def test_what_a_dropped_environment_alone_owed_goes_with_it(store: Store):
    store.environments.save_environment(DEV)
    fill(store, Asked())
    owe(store, "orders__v1", cells((0, 1)), "wrong", environment="dev_ada")
    owe(store, "orders__v1", cells((1, 2)), "wrong")
    assert store.views.of("dev_ada").owed == {"orders": cells((0, 2))}
    assert store.views.of("prod").owed == {"orders": cells((1, 2))}

    store.environments.drop_environment("dev_ada")
    store.environments.save_environment(DEV)
    assert store.views.of("dev_ada").owed == {"orders": cells((1, 2))}


def test_an_environment_that_is_being_published_to_stays(store: Store):
    store.environments.save_environment(Environment("dev", protected=False, follows="prod"))
    begun = Trial(store, environment="dev").begin("orders__v1")
    with pytest.raises(RequestError, match="plan p1 is not finished"):
        store.environments.drop_environment("dev")
    store.publications.withdraw_promotion(begun)
    store.environments.drop_environment("dev")


def test_what_a_dropped_environment_has_published_is_no_history_of_another_one_of_its_name(
    store: Store,
):
    def begin(version: str) -> None:
        store.environments.save_environment(DEV)
        clicks = Pointer("dev_ada", "clicks", "print-clicks", version, -1)
        store.environments.ensure_pointer(clicks, f"/data/{version}")

    begin("clicks__v1")
    trial = Trial(store, environment="dev_ada")
    trial.in_place("clicks", cells((0, 1)))
    trial.open()
    trial.fill("clicks", 0, 1)
    trial.save()
    trial.promote()
    assert [move.model for move in store.history.moves_in("dev_ada")] == ["clicks"]

    store.environments.drop_environment("dev_ada")
    begin("clicks__v2")

    assert store.history.moves_in("dev_ada") == []
    assert store.environments.never_filled("dev_ada") == {"clicks"}
    (move,) = store.history.moves_of("p1")
    assert move.environment == "dev_ada"
