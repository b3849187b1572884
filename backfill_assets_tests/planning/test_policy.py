"""What a policy requires of a plan, held against the few lines of an oracle."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

import pytest
from hypothesis import given, strategies as st

from backfill_assets.planning.review.policy import (
    Approval,
    ModelFacts,
    PlanFacts,
    Policy,
    PolicyError,
    Rule,
    closed_to_late_data,
    read_policy,
    still_required,
    unknown_names,
)

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)
PEOPLE = ("ann@shop", "bob@shop", "cy@shop")
MODELS = ("sales.orders", "sales.days", "web.visits")


def rewriting(*models: str, oldest: date | None = date(2024, 5, 1), **given: object) -> PlanFacts:
    touched = tuple(ModelFacts(name, 3, oldest) for name in models)
    return PlanFacts("prod", **{"authors": frozenset({"zoe"}), "models": touched, **given})


def agreed(*principals: str, days: float = 0.0) -> tuple[Approval, ...]:
    return tuple(Approval(name, NOW - timedelta(days=days)) for name in principals)


def one_rule(**given: object) -> Policy:
    return Policy(rules=(Rule.model_validate({"approvers": PEOPLE, **given}),))


rules = st.builds(
    Rule,
    environment=st.sampled_from(["prod", "dev_*", "*"]),
    models=st.lists(st.sampled_from(["*", "sales.*", "web.visits"]), min_size=1).map(tuple),
    approvers=st.just(PEOPLE),
    approvals=st.integers(1, 3),
    owner=st.sampled_from(["", *PEOPLE]),
    holds_days=st.sampled_from([1.0, 7.0]),
    always=st.booleans(),
    closed_before=st.sampled_from([None, date(2024, 1, 1), date(2024, 6, 1)]),
    over_cost=st.sampled_from([None, 10.0]),
)
models = st.builds(
    ModelFacts,
    st.sampled_from(MODELS),
    rewritten=st.integers(0, 2),
    oldest=st.sampled_from([date(2023, 5, 1), date(2024, 5, 1)]),
    removed=st.booleans(),
)
plans = st.builds(
    PlanFacts,
    st.sampled_from(["prod", "dev_x"]),
    authors=st.sampled_from([frozenset[str](), frozenset({"ann"}), frozenset({"bob@shop"})]),
    models=st.lists(models, max_size=3).map(tuple),
    automatic=st.booleans(),
    cost=st.sampled_from([None, 5.0, 50.0]),
)
approvals = st.lists(
    st.builds(
        Approval,
        st.sampled_from([*PEOPLE, "eve@shop"]),
        st.sampled_from([NOW - timedelta(days=age) for age in (0, 3, 30)]),
    ),
    max_size=4,
)


def met(rule: Rule, plan: PlanFacts, given: list[Approval]) -> bool:
    """The oracle: whether a rule is met."""
    touched = [
        model
        for model in plan.models
        if any(fnmatchcase(model.model, glob) for glob in rule.models)
        and (rule.always or model.removed or model.rewritten)
    ]
    changing = [model for model in touched if model.removed or model.rewritten]
    conditions = []
    if rule.closed_before:
        conditions.append(
            any(
                model.removed or (model.oldest or date.min) < rule.closed_before
                for model in changing
            )
        )
    if rule.over_cost is not None:
        conditions.append(plan.cost is None or plan.cost > rule.over_cost)
    concerned = touched and (not conditions or any(conditions))
    if plan.automatic or not fnmatchcase(plan.environment, rule.environment) or not concerned:
        return True
    fresh = {
        approval.principal
        for approval in given
        if NOW - approval.at < timedelta(days=rule.holds_days)
    }
    who = fresh & set(PEOPLE)
    mine = {
        person for person in who if person in plan.authors or person.split("@")[0] in plan.authors
    }
    enough = len(who) >= rule.approvals and (not rule.owner or rule.owner in who)
    return enough and (bool(who - mine) if plan.authors else len(who) > 1)


@given(st.lists(rules, max_size=3), plans, approvals)
def test_nothing_is_required_exactly_where_every_rule_is_met(
    listed: list[Rule], plan: PlanFacts, given: list[Approval]
):
    lacking = still_required(Policy(rules=tuple(listed)), plan, given, NOW)

    assert (not lacking) == all(met(rule, plan, given) for rule in listed)


@given(st.lists(rules, max_size=3), plans, approvals, approvals)
def test_another_approval_never_makes_more_required(
    listed: list[Rule], plan: PlanFacts, given: list[Approval], more: list[Approval]
):
    policy = Policy(rules=tuple(listed))

    if not still_required(policy, plan, given, NOW):
        assert still_required(policy, plan, [*given, *more], NOW) == ()


def test_the_author_is_never_the_only_approver():
    plan = rewriting("sales.days", authors=frozenset({"ann"}))

    assert still_required(one_rule(), plan, agreed("ann@shop"), NOW) == (
        (
            "rewrites published history of sales.days of prod: needs an approval by another person than its "
            "author"
        ),
    )
    assert still_required(one_rule(), plan, agreed("ann@shop", "bob@shop"), NOW) == ()


def test_of_a_plan_whose_author_is_not_known_one_approval_is_not_enough():
    plan = rewriting("sales.days", authors=frozenset())

    (said,) = still_required(one_rule(), plan, agreed("ann@shop"), NOW)
    assert "by a second person, since it is not known who made the plan" in said
    assert still_required(one_rule(), plan, agreed("ann@shop", "bob@shop"), NOW) == ()


def test_what_changes_no_published_cell_and_late_plans_need_no_approval():
    new = PlanFacts("prod", models=(ModelFacts("sales.days"),))
    late = rewriting("sales.days", automatic=True)

    assert still_required(one_rule(), new, (), NOW) == ()
    assert still_required(one_rule(always=True), late, (), NOW) == ()
    assert still_required(one_rule(always=True), new, (), NOW) != ()


def test_late_data_before_a_closed_date_waits_where_a_rule_says_so():
    def closed(**rule: Any) -> date | None:  # noqa: ANN401
        return closed_to_late_data(one_rule(**rule), "prod", "sales.days", NOW, "UTC")

    assert closed(closed_after_days=90) is None
    assert closed(late_data=True, closed_after_days=90) == date(2024, 3, 3)
    assert closed(late_data=True) == date.max
    assert closed(late_data=True, models=["other.*"]) is None
    assert closed(late_data=True, environment="dev") is None
    with pytest.raises(ValueError, match="write two rules"):
        one_rule(late_data=True, over_cost=1)


def test_late_data_waits_before_the_latest_date_that_any_rule_closes():
    first, second = date(2024, 2, 1), date(2024, 1, 1)
    late = Rule(approvers=PEOPLE, late_data=True, models=("web.*", "sales.*"))
    rules = [late.model_copy(update={"closed_before": day}) for day in (first, second)]
    both = late.model_copy(update={"closed_before": first, "closed_after_days": 400})

    for listed in (rules, rules[::-1], [both]):
        policy = Policy(rules=tuple(listed))
        assert closed_to_late_data(policy, "prod", "sales.days", NOW, "UTC") == first


def test_closed_periods_need_two():
    policy = one_rule(approvals=2, closed_after_days=90)

    assert still_required(policy, rewriting("sales.days"), (), NOW) == ()
    old = rewriting("sales.days", oldest=date(2024, 1, 5))
    (said,) = still_required(policy, old, agreed("ann@shop"), NOW)
    assert "closed before 2024-03-03" in said
    assert "needs 1 approval by bob@shop, cy@shop" in said
    assert still_required(policy, old, agreed("ann@shop", "bob@shop"), NOW) == ()


def test_the_age_of_a_cell_is_counted_in_days_of_its_own_clocks():
    policy = one_rule(late_data=True, closed_after_days=90)
    late = NOW + timedelta(hours=6)  # it is the 2nd of June in Tokyo already
    days = {
        zone: closed_to_late_data(policy, "prod", "sales.days", late, zone)
        for zone in ("UTC", "Asia/Tokyo")
    }
    assert days == {"UTC": date(2024, 3, 3), "Asia/Tokyo": date(2024, 3, 4)}

    def said(zone: str) -> tuple[str, ...]:
        fact = ModelFacts("sales.days", 1, date(2024, 3, 3), zone=zone)
        return still_required(policy, PlanFacts("prod", models=(fact,)), (), late)

    assert said("UTC") == ()
    assert "closed before 2024-03-04" in said("Asia/Tokyo")[0]


def test_a_cost_that_is_not_known_is_over_every_budget():
    policy = one_rule(over_cost=10)

    assert still_required(policy, rewriting("sales.days", cost=9.0), (), NOW) == ()
    assert (
        "cost 11.00, more than 10.00"
        in still_required(policy, rewriting("sales.days", cost=11.0), (), NOW)[0]
    )
    assert "its cost is not known" in still_required(policy, rewriting("sales.days"), (), NOW)[0]


def test_a_plan_that_takes_longer_than_allowed_or_no_one_knows_how_long_needs_approval():
    policy = one_rule(over_hours=2)

    def said(hours: float | None) -> str:
        return "".join(still_required(policy, rewriting("sales.days", hours=hours), (), NOW))

    assert said(2.0) == ""
    assert "(hours 3.00, more than 2.00)" in said(3.0)
    assert "(its hours are not known)" in said(None)


def test_a_whole_table_is_older_than_every_closed_date_unless_none_of_it_changes():
    policy = one_rule(closed_before=date(2000, 1, 1), always=True)
    whole = rewriting("sales.days", oldest=None)
    moved = PlanFacts("prod", models=(ModelFacts("sales.days"),))

    assert "closed before 2000-01-01" in still_required(policy, whole, (), NOW)[0]
    assert still_required(policy, moved, (), NOW) == ()


def test_a_model_that_is_removed_changes_published_history():
    removed = PlanFacts(
        "prod", models=(ModelFacts("sales.days", oldest=date(2024, 5, 1), removed=True),)
    )

    for policy in (one_rule(), one_rule(closed_before=date(2000, 1, 1))):
        (said,) = still_required(policy, removed, (), NOW)
        assert said.startswith("rewrites published history of sales.days of prod")


def test_what_a_rule_is_about_is_said_as_it_is():
    moved = PlanFacts("prod", models=(ModelFacts("sales.days"),))

    (said,) = still_required(one_rule(always=True), moved, (), NOW)
    assert said.startswith("moves sales.days of prod: needs 1 approval by ann@shop, ")


def test_the_validation_owner_approves_and_has_to():
    policy = one_rule(approvers=["ann@shop"], approvals=2, owner="val@shop")
    plan = rewriting("sales.days")

    lacks = "needs the approval of its validation owner val@shop"
    assert lacks in still_required(policy, plan, agreed("ann@shop"), NOW)[-1]
    assert still_required(policy, plan, agreed("ann@shop", "val@shop"), NOW) == ()


@pytest.mark.parametrize("author", ["bob@shop", "bob"])
def test_an_author_is_known_by_a_whole_name_and_by_its_part_before_the_at(author: str):
    plan = rewriting("sales.days", authors=frozenset({author}))

    assert still_required(one_rule(), plan, agreed("bob@shop"), NOW) != ()
    assert still_required(one_rule(), plan, agreed("ann@shop"), NOW) == ()


@pytest.mark.parametrize("given", [(), agreed("eve@shop")])
def test_an_approval_of_somebody_else_counts_for_nothing(given: tuple[Approval, ...]):
    (said,) = still_required(one_rule(), rewriting("sales.days"), given, NOW)
    assert said.endswith("needs 1 approval by ann@shop, bob@shop, cy@shop")


def test_a_rule_is_about_models_of_any_of_its_globs():
    plan = rewriting("sales.days", "web.visits")

    (said,) = still_required(one_rule(models=["shop.*", "sales.*"]), plan, (), NOW)
    assert said.startswith("rewrites published history of sales.days of prod:")
    assert still_required(one_rule(models=["shop.*"]), plan, (), NOW) == ()


ENVIRONMENTS = """
[[environments]]
name = "prod*"
promote = ["ann"]
plan = ["bob"]
canaries = "go on"
inventory = "stop"

[[environments]]
name = "prod_eu"

[[rules]]
environment = "shared"
approvers = ["cy"]
owner = "val"
"""


def test_every_entry_whose_name_fits_an_environment_is_about_it():
    policy = read_policy(ENVIRONMENTS, "p.toml")

    named = ("prod", "prod_eu", "shared", "dev")
    assert [policy.names(each) for each in named] == [True, True, True, False]
    assert [policy.goes_on(each) for each in named] == [True, False, False, False]
    assert [policy.needs_inventory(each) for each in named] == [True, True, False, False]
    assert [{*policy.planners(each)} for each in named] == [{"bob"}, {"bob"}, set(), set()]
    assert [{*policy.restorers(each)} for each in named] == [
        {"ann"}, {"ann"}, {"cy", "val"}, set(),
    ]  # fmt: skip
    assert policy.principals() == {"ann", "bob", "cy", "val"}


def test_an_approval_holds_as_long_as_the_policy_says():
    policy, plan = one_rule(holds_days=2), rewriting("sales.days")

    assert still_required(policy, plan, agreed("bob@shop", days=1.9), NOW) == ()
    assert still_required(policy, plan, agreed("bob@shop", days=2), NOW) != ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[[rules]]\naprovers = ['ann']", r"'rules\.0\.aprovers'.*'approvers' was probably meant"),
        ("[[rule]]\napprovers = ['ann']", r"'rule'.*'rules' was probably meant"),
        ("[[environments]]\nname = 'prod'\npromot = ['ann']", "'promote' was probably meant"),
        ("[[rules]]\napprovers = ['ann']\napprovals = 2", "asks for 2 approvals, and names 1"),
        ("[[rules]]\napprovers = ['ann']\napprovals = 'two'", r"rules\.0\.approvals"),
        ("[[rules]", "^the policy backfill_policy.toml can't be used: it is no TOML"),
        (
            "[[rules]]",
            "^the policy backfill_policy.toml can't be used: 'rules.0': asks for 1 approval, and names 0",
        ),
        ("[[rules]]\nzz = 1", "; known are always, approvals, approvers, closed_after_days, "),
        ("rules = 3", "'rules': it should be a valid tuple"),
    ],
)
def test_a_typo_says_what_was_found_and_what_was_meant(text: str, found: str):
    with pytest.raises(PolicyError, match=found):
        read_policy(text, "backfill_policy.toml")


def test_principals_without_a_key_and_globs_without_a_model_are_named():
    policy = one_rule(approvers=["bob@shop", "cy@shpo"], models=["sale.*", "web.*"])

    assert unknown_names(policy, ["bob@shop", "cy@shop"], MODELS) == (
        "principal 'cy@shpo' has no key in allowed_signers; 'cy@shop' was probably meant",
        "'sale.*' matches no model; 'sales.days' was probably meant",
    )
