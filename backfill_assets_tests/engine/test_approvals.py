"""Approvals stand between a built plan and an environment that a policy names, whichever way it is published."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.engine.fill.observing import observe_sources
from backfill_assets.engine.plans.plan_verbs import promote_plan, rollback_plan, undo_plan
from backfill_assets.engine.project.project import InProject
from backfill_assets.engine.project.ssh_signatures import SignatureError
from backfill_assets.engine.review.acting import NotEntitledError, UnsignedActError
from backfill_assets.engine.review.approvals import (
    UnapprovedError,
    approval_state,
    approve,
    to_approve,
)
from backfill_assets.engine.review.bound_parts import PARTS, bound_parts
from backfill_assets.engine.review.evidence import write_again
from backfill_assets.errors import RequestError
from backfill_assets.evidence.manifest import REFUSED
from backfill_assets.evidence.summary import summary
from backfill_assets.evidence.verify import verify
from backfill_assets.models.consumer import Consumer, Reading
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.review.approval import BUILD
from backfill_assets.planning.review.policy import PolicyError
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.builders import a_graph, a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, MORE, OLD, ROWS, VISITS, changed
from backfill_assets_tests.engine.world import on, row
from backfill_assets_tests.signing import quick_gate, quick_sign, quick_signature

if TYPE_CHECKING:
    from backfill_assets.engine.project.gate import Gate
    from backfill_assets.engine.project.project import Project
    from backfill_assets.models.graph import Graph
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets_tests.engine.world import World

BOB, CY, EVE = "bob@shop", "cy@shop", "eve@shop"
POLICY = f"[[rules]]\napprovers = ['{BOB}', '{CY}', 'ana@shop']\n"
PROMOTERS = f"[[environments]]\nname = 'prod'\npromote = ['{CY}']\n{POLICY}"
GATE = quick_gate(POLICY, BOB, CY, "ana@shop", EVE)
BOTH = a_graph(*OLD.models.values())


class Gated(Plans):
    """Plans under a policy; whoever acts signs with the key that is called as they are."""

    gate: Gate = GATE

    def project(self, graph: Graph, **given: Any) -> Project:  # noqa: ANN401
        who = given.pop("signs", None)
        gate = given.pop("gate", self.gate)
        signing = {"gate": lambda: gate, "sign": quick_sign(who) if who else None}
        return super().project(graph, **signing, **given)

    def approve(self, graph: Graph, plan: Plan, who: str, **given: Any) -> None:  # noqa: ANN401
        of = to_approve(self.project(graph, signs=who, **given), plan.plan_id)
        approve(of, bound_parts(of), "agreed")

    def lacking(self, graph: Graph, plan: Plan) -> tuple[str, ...]:
        found = approval_state(self.project(graph), plan.plan_id)
        assert found is not None
        return found.lacking


@pytest.fixture
def plans(world: World) -> Gated:
    world.begin(OLD, *ROWS)
    return Gated(world)


@pytest.fixture
def built(world: World, plans: Gated) -> Plan:
    """A plan of ana's, built, that changes the 8th of January."""
    world.land(a_source(), *changed(row(8, 1, 99.0)))
    wrong = Restatement(VISITS, "2024-01-08", "2024-01-08")
    plan = plans.make(OLD, restate=(wrong,), asked_by="ana")
    assert plans.apply(OLD, plan).status is PlanStatus.BUILT
    return plan


def total(world: World) -> Any:  # noqa: ANN401
    return world.rows(COSTS, "ds", "total")[1]


def test_published_history_changes_once_another_person_than_its_author_has_approved(
    world: World, plans: Gated, built: Plan
):
    with pytest.raises(UnapprovedError, match=r"needs 1 approval by ana@shop, bob@shop, cy@shop"):
        plans.promote(OLD, built)
    plans.approve(OLD, built, "ana@shop")
    with pytest.raises(UnapprovedError, match="by another person than its author"):
        plans.promote(OLD, built)
    assert total(world) == (on(8), 8)
    plans.approve(OLD, built, BOB)
    plans.promote(OLD, built)

    assert total(world) == (on(8), 99)
    events = world.store.plans.events(built.plan_id)
    assert [each.who for each in events if each.event == "approved"] == ["ana@shop", BOB]
    assert (
        verify(Path(world.root) / "evidence").findings == ()
    )  # nothing lacks: approvals have instants


def test_an_approval_by_a_principal_whom_the_policy_does_not_name_is_not_kept(
    world: World, plans: Gated, built: Plan
):
    with pytest.raises(NotEntitledError, match="eve@shop may not approve in prod"):
        plans.approve(OLD, built, EVE)
    with pytest.raises(SignatureError, match="its key is not listed"):
        plans.approve(OLD, built, "mallory@shop")
    with pytest.raises(
        UnsignedActError, match=r"launchpad can't prove who you are.*backfill approve p"
    ):
        approve(to_approve(plans.project(OLD), built.plan_id), {}, "")

    assert world.store.approvals.of_plan(built.plan_id) == []


def test_what_the_state_says_of_an_approval_is_not_believed(
    world: World, plans: Gated, built: Plan
):
    plans.approve(OLD, built, "ana@shop")
    (row_,) = world.store.approvals.of_plan(built.plan_id)
    forged = (
        replace(row_, principal=BOB, signature="x"),  # unsigned
        replace(row_, principal=BOB, text=row_.text + " "),  # of another text
        replace(row_, principal=BOB, signature=quick_signature("mallory@shop", row_.text)),
    )
    for row_ in forged:
        world.store.approvals.keep(row_)

    with pytest.raises(UnapprovedError, match="its key is not listed"):
        plans.promote(OLD, built)


def test_an_approval_of_another_plan_counts_for_none(world: World, plans: Gated, built: Plan):
    plans.approve(OLD, built, BOB)
    (given,) = world.store.approvals.of_plan(built.plan_id)
    plans.promote(OLD, built)
    world.land(a_source(), *changed(row(9, 1, 77.0)))
    wrong = Restatement(VISITS, "2024-01-09", "2024-01-09")
    other = plans.make(OLD, restate=(wrong,), asked_by="ana")
    plans.apply(OLD, other)
    world.store.approvals.keep(replace(given, plan_id=other.plan_id))

    with pytest.raises(UnapprovedError, match=f"it is one of plan {built.plan_id}"):
        plans.promote(OLD, other)


def test_an_approval_expires_as_it_was_signed_and_as_the_policy_says(
    world: World, plans: Gated, built: Plan
):
    plans.approve(OLD, built, BOB)
    world.clock.now += timedelta(days=6)
    assert plans.lacking(OLD, built) == ()
    shorter = quick_gate(POLICY + "holds_days = 2", BOB, CY, digest=GATE.digest)
    assert approval_state(plans.project(OLD, gate=shorter), built.plan_id).lacking  # type: ignore[union-attr]
    world.clock.now += timedelta(hours=23)
    assert plans.lacking(OLD, built) == ()
    world.clock.now += timedelta(hours=1)

    assert "1 approval" in plans.lacking(OLD, built)[0]


def test_a_cell_that_is_built_again_otherwise_voids_the_approval(
    world: World, plans: Gated, built: Plan
):
    plans.approve(OLD, built, BOB)
    planned = built.model(COSTS)
    assert planned is not None
    of = to_approve(plans.project(OLD), built.plan_id)
    (record,) = of.built(planned)
    otherwise = replace(record.content, rows=record.content.rows + 1)
    rewrite_record(world, record, otherwise)

    with pytest.raises(UnapprovedError, match=r"bob@shop \(changed since: built cells\)"):
        plans.promote(OLD, built)
    assert total(world) == (on(8), 8)


def rewrite_record(world: World, record: Any, content: Any) -> None:  # noqa: ANN401
    """Let the state say that a cell was built with another content."""
    import sqlalchemy as sa  # noqa: PLC0415

    from backfill_assets.state.tables import READY_RECORDS  # noqa: PLC0415

    table = READY_RECORDS.c
    mine = (table.version == record.version, table.batch_id == record.batch_id)
    engine = sa.create_engine(f"sqlite:///{world.root}/state.db")
    with engine.begin() as connection:
        connection.execute(sa.update(READY_RECORDS).where(*mine).values(content=content))
    engine.dispose()


def test_another_policy_or_consumer_voids_the_approval_and_a_gap_that_was_filled_does_not(
    world: World, plans: Gated, built: Plan
):
    plans.approve(OLD, built, BOB)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *changed(row(8, 1, 99.0)), row(11, 1, 11.0))
    world.fill(OLD)
    assert plans.lacking(OLD, built) == ()

    plans.gate = quick_gate(POLICY + "approvals = 2", BOB, CY, "ana@shop")
    plans.approve(OLD, built, CY)
    with pytest.raises(UnapprovedError, match="changed since: policy"):
        plans.promote(OLD, built)
    plans.gate = GATE
    board = Consumer(name="board", kind="dashboard", owner="team:x", reads=[Reading(COSTS)])
    seen = replace(OLD, consumers={"board": board})
    with pytest.raises(UnapprovedError, match="changed since: consumers"):
        plans.promote(seen, built)
    plans.promote(OLD, built)
    assert total(world) == (on(8), 99)


def test_evidence_and_report_name_the_approvals_that_counted_and_why_others_did_not(
    world: World, plans: Gated, built: Plan
):
    def signed() -> list[tuple[str, str]]:
        given = json.loads((folder / "approvals.json").read_text(encoding="utf-8"))["signed"]
        return [(each["principal"], each["void"]) for each in given]

    folder = Path(world.root) / "evidence" / built.plan_id
    plans.approve(OLD, built, BOB)
    plans.gate = quick_gate(POLICY + "holds_days = 3", BOB, CY, "ana@shop", digest="edited")
    with pytest.raises(UnapprovedError):
        plans.promote(OLD, built)
    assert signed() == [(BOB, "changed since: policy")]
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert "UTC; void: changed since: policy" in report

    plans.approve(OLD, built, CY)
    plans.promote(OLD, built)

    assert signed() == [(BOB, "changed since: policy"), (CY, "")]
    assert any(line.endswith("approved, signed, by cy@shop") for line in summary(folder))
    before = (folder / "manifest.json").read_bytes()
    plans.gate = GATE
    write_again(InProject(project=plans.project(OLD)), built.plan_id)
    assert (folder / "manifest.json").read_bytes() == before


def test_a_promotion_that_lacks_approvals_leaves_evidence_of_why(
    world: World, plans: Gated, built: Plan
):
    with pytest.raises(UnapprovedError):
        plans.promote(OLD, built)

    last = world.store.evidence.of_plan(built.plan_id)[-1]
    assert (last.ended, last.written) == (REFUSED, True)
    assert "needs 1 approval by ana@shop, bob@shop, cy@shop" in last.why


def test_an_inventory_that_changed_since_voids_the_approval(
    world: World, plans: Gated, built: Plan
):
    plans.approve(OLD, built, BOB)
    world.land(a_source(), *(each for each in changed(row(8, 1, 99.0)) if each[0] != on(7)))
    observe_sources(world.store, [a_source()], str(world.root), lambda: world.spark)
    assert plans.lacking(OLD, built) == ()  # the plan reads nothing of that day

    world.land(a_source(), *(each for each in changed(row(8, 1, 99.0)) if each[0] != on(8)))
    observe_sources(world.store, [a_source()], str(world.root), lambda: world.spark)

    found = approval_state(plans.project(OLD), built.plan_id)
    assert found is not None
    assert found.approvals[0].void == "changed since: inventory"


def test_cells_that_a_promotion_appends_void_nothing_and_are_listed(world: World, plans: Gated):
    plan = plans.make(MORE, asked_by="ana")
    plans.apply(MORE, plan)
    plans.approve(MORE, plan, BOB)
    world.clock.now += timedelta(days=1)
    world.land(a_source(), *ROWS, row(11, 1, 11.0))
    world.fill(OLD)

    done = plans.promote(MORE, plan)

    assert done.carried
    assert world.rows(VISITS, "ds", "double")[-1] == (on(11), 22)


def test_only_a_principal_whom_the_policy_names_promotes_and_takes_back(
    world: World, plans: Gated, built: Plan
):
    plans.gate = quick_gate(PROMOTERS, BOB, CY, "ana@shop", EVE, digest=GATE.digest)
    plans.approve(OLD, built, BOB)
    with pytest.raises(UnsignedActError, match=f"backfill promote {built.plan_id}"):
        plans.promote(OLD, built)
    for who in (BOB, EVE):
        with pytest.raises(NotEntitledError, match="may not promote in prod"):
            promoted(plans, built, who)
    promoted(plans, built, CY)

    assert world.store.history.moves_of(built.plan_id)[0].who == CY
    for back in (rollback_plan, undo_plan):
        with pytest.raises(NotEntitledError):
            back(plans.project(OLD, signs=BOB), built)
    rollback_plan(plans.project(OLD, signs=CY), built)
    assert total(world) == (on(8), 8)
    signed = [each.act for each in world.store.approvals.of_plan(built.plan_id)]
    assert signed == ["approve", "promote", "rollback"]


def promoted(plans: Gated, plan: Plan, who: str) -> None:
    promote_plan(plans.project(OLD, signs=who), plan)


def test_where_the_policy_names_no_promoters_an_approver_takes_back_by_themselves(
    plans: Gated, built: Plan
):
    plans.approve(OLD, built, BOB)
    plans.promote(OLD, built)
    with pytest.raises(NotEntitledError, match="eve@shop may not rollback"):
        rollback_plan(plans.project(OLD, signs=EVE), built)
    with pytest.raises(UnsignedActError):
        undo_plan(plans.project(OLD), built)

    rollback_plan(plans.project(OLD, signs=CY), built)


def test_a_plan_that_was_edited_in_memory_is_not_promoted(plans: Gated, built: Plan):
    edits = (
        replace(built, protected=False),
        replace(built, environment="dev_x"),
        replace(built, request=replace(built.request, asked_by="zoe")),
    )
    for edited in edits:
        with pytest.raises(RequestError, match="its file was edited"):
            plans.promote(OLD, edited)


def test_what_rewrites_nothing_needs_no_approval(world: World, plans: Gated):
    plan = plans.make(OLD, restate=(Restatement(VISITS),), asked_by="ana")
    plans.apply(OLD, plan)

    plans.promote(OLD, plan)

    assert world.store.plans.get(plan.plan_id).status is PlanStatus.PROMOTED


def test_only_those_who_are_named_plan_and_the_plan_names_them(plans: Gated):
    named = f"[[environments]]\nname = 'prod'\nplan = ['{CY}']\n"
    gate = quick_gate(named, BOB, CY)
    from backfill_assets.engine.plans.making import make_plan  # noqa: PLC0415
    from backfill_assets.planning.plan.request import PlanRequest  # noqa: PLC0415

    request = PlanRequest(environment="prod", asked_by="ana", restate=(Restatement(VISITS),))
    with pytest.raises(NotEntitledError, match="bob@shop may not plan in prod"):
        make_plan(plans.project(OLD, signs=BOB, gate=gate), request)
    plan = make_plan(plans.project(OLD, signs=CY, gate=gate), request).plan

    assert plan.request.asked_by == CY
    with pytest.raises(UnsignedActError, match="to apply in prod requires a signature"):
        plans.apply(OLD, plan, gate=gate)
    assert plans.apply(OLD, plan, gate=gate, signs=CY).status is PlanStatus.BUILT


def test_a_policy_that_names_what_is_not_there_is_refused_before_anything_is_signed(
    plans: Gated, built: Plan
):
    wrong = quick_gate("[[rules]]\napprovers = ['bob@shpo']\nmodels = ['web.visit']", BOB)

    with pytest.raises(PolicyError, match=r"'bob@shop' was.*'web.visits' was probably meant"):
        to_approve(plans.project(OLD, gate=wrong), built.plan_id)


def test_a_plan_that_removes_the_only_model_of_a_rule_can_be_approved(world: World, plans: Gated):
    rule = f"[[rules]]\napprovers = ['{BOB}']\nmodels = ['{COSTS}']\n"
    gate, left = quick_gate(rule, BOB), a_graph(OLD.models[VISITS])
    plan = plans.make(left, asked_by="ana")
    assert plan.removed == (COSTS,)
    plans.apply(left, plan, gate=gate)

    plans.approve(left, plan, BOB, gate=gate)

    promote_plan(plans.project(left, gate=gate), plan)
    assert COSTS not in world.store.environments.pointers("prod")


def test_every_bound_part_is_hashed_once():
    names = [name for name, _ in PARTS]

    assert len(names) == len({*names})
    assert names[:3] == ["plan", "built cells", "audit results"]
    assert {*names} > BUILD
