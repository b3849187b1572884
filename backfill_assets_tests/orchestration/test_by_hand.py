"""Published cells that are launched by hand: a plan of their own, waiting at its gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.engine.plans.plan_verbs import promote_plan
from backfill_assets.models.graph import build_graph
from backfill_assets.orchestration.resources import StateResource
from backfill_assets.planning.plan.plan_json import read_plan
from backfill_assets.snapshots.loaded import Loaded
from backfill_assets.snapshots.stored_plan import PlanStatus
from backfill_assets_tests.orchestration.shop import failure, keys, lent, observed, waiting
from backfill_assets_tests.orchestration.test_filling import ALL
from backfill_assets_tests.toy import DAYS, MODELS, SOURCES

if TYPE_CHECKING:
    from backfill_assets_tests.orchestration.shop import Shop

SALES = ("toy.sales", "ds", "shop", "amount")
THREE = ("toy.sales_of_three_days", "ds", "amount")


def plans() -> list[tuple[str, PlanStatus]]:
    store = StateResource().store
    try:
        return [(plan.plan_id, plan.status) for plan in store.plans.latest()]
    finally:
        store.close()


def events(plan_id: str) -> list[str]:
    store = StateResource().store
    try:
        return [event.event for event in store.plans.events(plan_id)]
    finally:
        store.close()


def promote(shop: Shop, plan_id: str) -> None:
    state = StateResource()
    plan = read_plan(state.store.plans.get(plan_id).content)
    loaded = Loaded.of(build_graph(MODELS, SOURCES))
    promote_plan(state.project(loaded, "gate", lent(shop.spark), "ann"), plan)
    state.store.close()


def test_a_launch_over_published_cells_waits_as_one_plan_until_somebody_promotes_it(shop: Shop):
    assert shop.fill("toy.sales", "toy.sales_of_three_days", cells=ALL).success
    before = shop.published(*SALES), shop.published(*THREE)
    shop.sell("2024-01-30", "west", 7)

    result = shop.fill("toy.sales", "toy.sales_of_three_days", cells=ALL)

    assert result.success, failure(result)
    [(plan_id, status)] = plans()
    assert status is PlanStatus.BUILT
    for model in ("toy.sales", "toy.sales_of_three_days"):
        assert waiting(result, model) == {plan_id: list(DAYS)}
        assert observed(result, model) == []
    assert (shop.published(*SALES), shop.published(*THREE)) == before

    promote(shop, plan_id)

    after = shop.published(*SALES), shop.published(*THREE)
    assert set(after[0]) - set(before[0]) == {("2024-01-30", "west", 7)}
    assert [new[0] for new, old in zip(after[1], before[1], strict=True) if new != old] == [
        "2024-01-30",
        "2024-01-31",
        "2024-02-01",
    ]


def test_a_launch_in_which_nothing_turns_out_different_ends_by_itself(shop: Shop):
    assert shop.fill("toy.sales", cells=ALL).success
    before = shop.published(*SALES)

    result = shop.fill("toy.sales", cells=ALL)

    assert result.success, failure(result)
    assert sorted(map(str, keys(result, "toy.sales"))) == list(DAYS)
    assert [status for _, status in plans()] == [PlanStatus.PROMOTED]
    assert shop.published(*SALES) == before


def test_what_is_missing_is_published_at_once_beside_what_waits(shop: Shop):
    assert shop.fill("toy.sales", cells=f"{DAYS[0]}...{DAYS[2]}").success
    shop.sell(DAYS[1], "west", 7)

    result = shop.fill("toy.sales", cells=ALL)

    assert result.success, failure(result)
    assert sorted(map(str, keys(result, "toy.sales"))) == list(DAYS)
    assert [*waiting(result, "toy.sales").values()] == [list(DAYS[:3])]


def test_a_second_launch_over_cells_that_wait_is_refused_and_names_the_plan(shop: Shop):
    assert shop.fill("toy.sales", cells=ALL).success
    shop.sell("2024-01-30", "west", 7)
    assert shop.fill("toy.sales", cells=ALL).success
    [(waiting, _)] = plans()

    result = shop.fill("toy.sales", cells=ALL)

    assert not result.success
    assert f"plan {waiting}" in failure(result)
    [(given_up, status)] = [each for each in plans() if each[0] != waiting]
    assert status is PlanStatus.ABANDONED
    assert "abandoned" in events(given_up)
