"""No sequence of calls by people without rights changes prod: generated sequences against a small oracle.

Bob and Cy may approve, Cy alone may promote and take back. Ana made the plans, and may approve as well. Eve has a key
that the policy does not name; Mallory's key is not in the file of allowed signers.
"""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from backfill_assets.engine.plans.plan_verbs import (
    apply_plan,
    promote_plan,
    rollback_plan,
    undo_plan,
)
from backfill_assets.engine.project.header_identity import BothSigners, HeaderIdentity
from backfill_assets.engine.review.appointments import appoint, end_appointment
from backfill_assets.engine.review.approvals import approve, to_approve
from backfill_assets.engine.review.bound_parts import bound_parts
from backfill_assets.errors import BackfillAssetsError
from backfill_assets.planning.plan.request import Restatement
from backfill_assets.planning.review.approval import Act, read_statement, statement_text
from backfill_assets.snapshots.environment import PROD
from backfill_assets.snapshots.person import unverified_person
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets.state.store import Store
from backfill_assets.state.tables import READY_RECORDS
from backfill_assets_tests.builders import a_source
from backfill_assets_tests.engine.plans import Plans
from backfill_assets_tests.engine.test_plans import COSTS, OLD, ROWS, VISITS
from backfill_assets_tests.engine.world import LEASE, Clock, World
from backfill_assets_tests.signing import quick_gate, quick_sign

if TYPE_CHECKING:
    from backfill_assets.engine.project.gate import Gate
    from backfill_assets.engine.project.project import Project
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.snapshots.signed_statement import SignedStatement

ANA, BOB, CY, EVE, MALLORY = (f"{name}@shop" for name in ("ana", "bob", "cy", "eve", "mallory"))
LISTED = (ANA, BOB, CY, EVE)
EVERYBODY = (*LISTED, MALLORY, None)  # None: the launchpad, which can't sign
POLICY = (
    f"[[environments]]\nname = 'prod'\npromote = ['{CY}']\n"
    f"[[rules]]\napprovers = ['{ANA}', '{BOB}', '{CY}']\nholds_days = 2\n"
)
HEADER = HeaderIdentity(b"o" * 64)
"""The webserver's key; whoever it names signs by it, also people whom the policy does not know."""


def both(number: int) -> Gate:
    """A policy under which keys count, and the header of a proxy."""
    gate = quick_gate(f"{POLICY}# {number}", *LISTED)
    return replace(gate, signers=BothSigners(gate.signers, HEADER, LISTED), header=HEADER)


POLICIES = tuple(both(number) for number in range(2))

people = st.sampled_from((*EVERYBODY, CY, CY))  # more often those whose calls may succeed
numbers = st.integers(0, 1)
FORGERIES = (
    "replayed", "unsigned", "of Mallory", "by a header", "edited", "renamed", "of an act",
)  # fmt: skip
ways = st.sampled_from(("key", "header"))


@dataclass(frozen=True)
class Template:
    """A folder in which two plans of Ana's are built, to be copied; and how often prod changed in copies."""

    session: Any
    root: Path
    plans: tuple[Plan, ...]
    seen: Counter[str] = field(default_factory=Counter[str])


@pytest.fixture
def template(session: Any, tmp_path: Path) -> Template:  # noqa: ANN401
    with opened(tmp_path, Clock()) as store:
        world = World(session, tmp_path, store, Clock())
        plans = Plans(world)
        world.land(a_source(), *ROWS)
        world.fill(OLD)
        other = [(ds, id_, cost + 50 * (ds.day in (8, 9))) for ds, id_, cost in ROWS]
        world.land(a_source(), *other)
        wrong = (Restatement(VISITS, day, day) for day in ("2024-01-08", "2024-01-09"))
        built = [plans.make(OLD, restate=(each,), asked_by="ana") for each in wrong]
        for plan in built:
            assert plans.apply(OLD, plan).status is PlanStatus.BUILT
    return Template(session, tmp_path, tuple(built))


def opened(root: Path, clock: Clock) -> Store:
    url = f"sqlite:///{root}/state.db"
    return Store.open(url, clock=clock, lease_seconds=LEASE.total_seconds(), data_root=str(root))


@dataclass(frozen=True)
class Agreed:
    """An approval as the oracle remembers it: by whom, when, of what, under which policy."""

    who: str
    at: Any
    cells: int
    policy: int


@dataclass
class Oracle:
    """What may have happened to one plan."""

    agreed: list[Agreed] = field(default_factory=list)
    rebuilt: int = 0
    promoted: bool = False
    appointed: list[Agreed] = field(default_factory=list[Agreed])
    stands: bool = False


class Attempts(RuleBasedStateMachine):
    """Everything that people try, each in a copy of the template."""

    def __init__(self, template: Template) -> None:
        super().__init__()
        self.root = Path(mkdtemp(prefix="rights-"))
        shutil.copytree(template.root, self.root, dirs_exist_ok=True)
        self.clock = Clock()
        self.store = opened(self.root, self.clock)
        self.world = World(template.session, self.root, self.store, self.clock)
        self.plans = Plans(self.world)
        self.built, self.seen = template.plans, template.seen
        self.policy, self.days = 0, 0
        self.known = (Oracle(), Oracle())
        self.prod = self.read()

    def teardown(self) -> None:
        with suppress(AttributeError):
            self.store.close()
            shutil.rmtree(self.root)

    @property
    def gate(self) -> Gate:
        return POLICIES[self.policy]

    def read(self) -> object:
        """All that readers of prod see, and by which plan they see it."""
        pointers = self.store.environments.pointers(PROD)
        held = {
            name: self.store.views.content_at_pin(PROD, name, self.store.views.of(PROD).ready(name))
            for name in (VISITS, COSTS)
        }
        return pointers, held, len(self.store.history.moves_in(PROD, 0))

    def project(self, who: str | None, by: str = "key", **given: Any) -> Project:  # noqa: ANN401
        gate, signer = self.gate, HEADER.signer if by == "header" else quick_sign
        sign = signer(who) if who else None
        usual = {"gate": lambda: gate, "sign": sign, "who": str(unverified_person("it", BOB))}
        return self.plans.project(OLD, **{**usual, **given})

    def tried(self, call: Any, *args: Any) -> bool:  # noqa: ANN401
        """Whether a call was carried out."""
        try:
            call(*args)
        except BackfillAssetsError:
            return False
        return True

    def counts(self, number: int) -> bool:
        """The oracle: whether a plan has an approval that counts, by another person than Ana."""
        known = self.known[number]
        return any(
            each.who in (BOB, CY)
            and self.clock.now < each.at + timedelta(days=2)
            and (each.cells, each.policy) == (known.rebuilt, self.policy)
            for each in known.agreed
        )

    def is_due(self, number: int) -> bool:
        """The oracle: whether Cy has signed for a time that has come, of the plan as it is, and the last one stands."""
        known, now = self.known[number], self.clock.now
        return (
            known.stands
            and known.appointed[-1].at <= now
            and any(
                each.at <= now < each.at + timedelta(days=1)
                and (each.cells, each.policy) == (known.rebuilt, self.policy)
                for each in known.appointed
            )
        )

    @rule(number=numbers, who=people, by=ways, hours=st.sampled_from([1, 24, 36]))
    def appoints(self, number: int, who: str | None, by: str, hours: int) -> None:
        known, at = self.known[number], self.clock.now + timedelta(hours=hours)
        done = self.tried(appoint, self.project(who, by), self.built[number].plan_id, at, "")
        assert not done or (who == CY and not known.promoted)
        if done:
            self.seen["appointed"] += 1
            known.appointed.append(Agreed(CY, at, known.rebuilt, self.policy))
            known.stands = True

    @rule(number=numbers)
    def takes_an_appointment_back(self, number: int) -> None:
        end_appointment(self.project(None), self.built[number].plan_id, "")
        self.known[number].stands = False

    @initialize(
        number=numbers,
        who=st.sampled_from([ANA, BOB]),
        again=st.sampled_from(["nothing", "cell", "policy", "promoted", "appointed", "forged"]),
    )
    def one_has_approved(self, number: int, who: str, again: str) -> None:
        self.approves(number, who)
        if again == "appointed":
            self.appoints(number, CY, "key", 24)
        if again == "forged":
            self.forges(number, number)
            self.promotes(number, CY)
        if again == "promoted":
            self.promotes(number, CY)
        if again == "cell":
            self.a_cell_is_built_again(number)
        if again == "policy":
            self.the_policy_changes()

    @rule(number=numbers, who=people, by=ways)
    def approves(self, number: int, who: str | None, by: str = "key") -> None:
        def call() -> None:
            of = to_approve(self.project(who, by), self.built[number].plan_id)
            approve(of, bound_parts(of))

        known = self.known[number]
        done = self.tried(call)
        assert done == (who in (ANA, BOB, CY) and not known.promoted)
        if done and who:
            known.agreed.append(Agreed(who, self.clock.now, known.rebuilt, self.policy))

    @rule(number=numbers, who=people, by=ways)
    def promotes(self, number: int, who: str | None, by: str = "key") -> None:
        self.promoted(number, who, by)

    @rule(
        number=numbers,
        who=people,
        edit=st.sampled_from(["environment", "protected", "author", "late", "cells"]),
    )
    def promotes_an_edited_plan(self, number: int, who: str | None, edit: str) -> None:
        plan = self.built[number]
        edits: dict[str, Plan] = {
            "environment": replace(plan, environment="dev_x"),
            "protected": replace(plan, protected=False),
            "author": replace(plan, request=replace(plan.request, asked_by="zoe")),
            "late": replace(plan, request=replace(plan.request, launch="by hand")),
            "cells": replace(plan, models=plan.models[:1]),
        }
        for call in (promote_plan, apply_plan):
            assert not self.tried(call, self.project(who), edits[edit])

    def promoted(self, number: int, who: str | None, by: str) -> None:
        known, plan = self.known[number], self.built[number]
        may = (who == CY or self.is_due(number)) and self.counts(number)
        before = known.promoted
        done = self.tried(promote_plan, self.project(who, by), plan)
        if done:
            self.seen["published"] += 1
            assert may
            assert not before
            known.promoted, self.prod = True, self.read()
            assert self.store.history.moves_of(plan.plan_id)[0].who == CY
        elif may and not any(each.promoted or each.rebuilt for each in self.known):
            raise AssertionError("what may be promoted was refused")

    @rule(number=numbers, who=people, back=st.sampled_from([rollback_plan, undo_plan]))
    def takes_back(self, number: int, who: str | None, back: Any) -> None:  # noqa: ANN401
        if self.tried(back, self.project(who), self.built[number]):
            self.seen["taken back"] += 1
            assert who == CY
            assert self.known[number].promoted
            self.prod = self.read()

    @precondition(lambda self: any(known.agreed for known in self.known))
    @rule(number=numbers, who=people)
    def promotes_without_the_policy(self, number: int, who: str | None) -> None:
        ours = self.project(who, gate=lambda: None)
        assert not self.tried(promote_plan, ours, self.built[number])

    @rule(source=numbers, number=numbers)
    def forges(self, source: int, number: int) -> None:
        """Write whatever is there once more, changed in every way, as rows of a plan."""
        rows = self.store.approvals.of_plan(self.built[source].plan_id)
        for taken, how in product(rows[:2], FORGERIES):
            made = forged(taken, self.built[number].plan_id, how, self.clock)
            self.store.approvals.keep(replace(made, plan_id=self.built[number].plan_id))

    @precondition(lambda self: self.days < 5)
    @rule()
    def a_day_passes(self) -> None:
        self.days += 1
        self.clock.now += timedelta(days=1)

    @rule(number=numbers)
    def a_cell_is_built_again(self, number: int) -> None:
        """Let a cell of the workspace hold something else, as a race with an approval would."""
        plan, known = self.built[number], self.known[number]
        if known.promoted:
            return
        own = self.store.environments.own_pointers(f"plan:{plan.plan_id}")[VISITS]
        (record,) = self.store.versions.ready_records(own.version, own.delta_version)
        otherwise = replace(record.content, rows=record.content.rows + 1)
        engine = sa.create_engine(f"sqlite:///{self.root}/state.db")
        mine = READY_RECORDS.c.batch_id == record.batch_id
        with engine.begin() as connection:
            connection.execute(sa.update(READY_RECORDS).where(mine).values(content=otherwise))
        engine.dispose()
        known.rebuilt += 1

    @rule()
    def the_policy_changes(self) -> None:
        self.policy = 1 - self.policy

    @invariant()
    def prod_is_as_those_with_rights_left_it(self) -> None:
        assert self.read() == self.prod


def forged(taken: SignedStatement, plan_id: str, how: str, clock: Clock) -> SignedStatement:
    said = read_statement(taken.text) if taken.text.startswith("{") else None
    made = taken
    match how:
        case "unsigned":
            made = replace(taken, principal=BOB, signature="")
        case "of Mallory":
            made = replace(taken, principal=BOB, signature=quick_sign(MALLORY)(taken.text))
        case "by a header":
            theirs = HeaderIdentity(b"m" * 64).signer(BOB)
            made = replace(taken, principal=BOB, signature=theirs(taken.text))
        case "edited" if said:
            later = replace(said, plan_id=plan_id, expires=clock.now + timedelta(days=300))
            made = replace(taken, text=statement_text(later))
        case "renamed":
            made = replace(taken, principal=BOB, act=Act.APPROVE.value)
        case "of an act" if said:
            made = replace(taken, text=statement_text(replace(said, act=Act.APPROVE)))
        case _:
            pass
    return made


def explore(template: Template, sequences: int) -> None:
    class Here(Attempts):
        def __init__(self) -> None:
            super().__init__(template)

    slow = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)
    asked = settings(
        max_examples=sequences, stateful_step_count=15, deadline=None, suppress_health_check=slow
    )
    run_state_machine_as_test(Here, settings=asked)


def test_no_sequence_of_calls_without_rights_changes_prod(template: Template):
    explore(template, 15)


@pytest.mark.slow
def test_none_of_300_sequences_of_calls_without_rights_changes_prod(template: Template):
    explore(template, 300)

    assert template.seen["published"] > 0, "with rights it was possible"
