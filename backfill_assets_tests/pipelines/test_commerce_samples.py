from __future__ import annotations

from collections import Counter
from datetime import timedelta
from decimal import Decimal

import pytest

from backfill_assets.pipelines.commerce.jaffle_shop import EXTRACT, read_shop, simulated_shop
from backfill_assets.pipelines.commerce.supply_prices import (
    BEFORE_OPENING,
    CHANGES,
    MISTYPED,
    price_history,
)

Samples = dict[str, list[dict[str, str]]]


@pytest.fixture(scope="module")
def extract() -> Samples:
    return {name: table.to_pylist() for name, table in read_shop(EXTRACT).items()}


def test_extract_is_the_first_fourteen_days_of_the_seeded_year(extract: Samples):
    year = {name: table.to_pylist() for name, table in simulated_shop().items()}
    for whole in ("products", "supplies"):
        assert year[whole] == extract[whole]
    first_days = [row for row in year["orders"] if row["ordered_at"] < "2018-09-15"]
    assert first_days == extract["orders"]
    kept = {row["id"] for row in first_days}
    assert [row for row in year["items"] if row["order_id"] in kept] == extract["items"]
    assert len({row["ordered_at"][:10] for row in year["orders"]}) == 365


def test_no_order_of_the_extract_lacks_its_customer_store_or_products(extract: Samples):
    ids = {name: {row["id"] for row in extract[name]} for name in ("customers", "stores", "orders")}
    skus = {row["sku"] for row in extract["products"]}
    assert {row["customer"] for row in extract["orders"]} <= ids["customers"]
    assert {row["store_id"] for row in extract["orders"]} <= ids["stores"]
    assert {row["order_id"] for row in extract["items"]} <= ids["orders"]
    assert {row["sku"] for row in extract["items"]} <= skus


def test_every_supply_changes_its_price_three_times_a_year(extract: Samples):
    supplies = [(row["id"], row["sku"], int(row["cost"])) for row in extract["supplies"]]
    days = Counter((price.supply_id, price.sku) for price in price_history(supplies))
    assert set(days) == {(supply_id, sku) for supply_id, sku, _ in supplies}
    corrected = {key for key, count in days.items() if count == len(CHANGES) + 2}
    assert {supply_id for supply_id, _ in corrected} == {MISTYPED[0]}
    assert all(count == len(CHANGES) + 1 for key, count in days.items() if key not in corrected)


def test_price_history_starts_before_the_shop_opens_at_the_cost_that_jafgen_knows():
    first, *changes = price_history([("SUP-001", "JAF-001", 7)])
    assert (first.effective_from, first.cost) == (BEFORE_OPENING, Decimal("0.0700"))
    assert tuple(price.effective_from for price in changes) == CHANGES


def test_a_mistyped_price_is_corrected_two_days_later():
    supply, day = MISTYPED
    wrong, right = [
        price for price in price_history([(supply, "X", 52)]) if price.effective_from == day
    ]
    assert wrong.cost == right.cost * 10
    assert right.recorded_at - wrong.recorded_at == timedelta(days=2)
