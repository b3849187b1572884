from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession, functions as F

from backfill_assets.pipelines.commerce import models, sources
from backfill_assets.pipelines.commerce.jaffle_shop import EXTRACT, read_shop
from backfill_assets.pipelines.commerce.landing import landings
from backfill_assets_tests.pipelines.computing import computed, frame, records

pytestmark = pytest.mark.spark

DAY, NEXT = "2018-09-01", "2018-09-02"


def order(order_id: str, day: str = DAY, **more: str) -> dict[str, str]:
    at = f"{day} 10:00:00"
    known = {"id": order_id, "customer": "c", "store_id": "s", "order_date": day}
    cents = {"subtotal": "1000", "tax_paid": "60", "order_total": "1060"}
    return {**known, **cents, "ordered_at": at, "updated_at": at, "ingested_at": at, **more}


def item(item_id: str, order_id: str, sku: str, day: str = DAY) -> dict[str, str]:
    return {"id": item_id, "order_id": order_id, "sku": sku, "order_date": day}


def line(order_id: str, sku: str, quantity: int, day: str = DAY) -> dict[str, str]:
    return {"order_id": order_id, "item_id": sku, "quantity": str(quantity), "order_date": day}


def fact(order_id: str, revenue: str, cost: str, day: str = DAY, store: str = "s"):
    known = {"order_id": order_id, "order_date": day, "store_id": store}
    return {**known, "revenue": revenue, "cost": cost}


def test_order_amounts_become_dollars(spark: SparkSession):
    raw = frame(spark, sources.raw_orders, order("o1", subtotal="1999", order_total="2059"))
    found = computed(spark, models.orders, {"commerce.raw_orders": raw}, DAY, NEXT)
    columns = ("order_id", "subtotal", "tax_paid", "order_total")
    assert records(found, *columns) == [("o1", "19.99", "0.60", "20.59")]


def test_a_day_holds_its_first_order_and_not_the_next_days(spark: SparkSession):
    raw = frame(spark, sources.raw_orders, order("o1"), order("o2", NEXT))
    found = computed(spark, models.orders, {"commerce.raw_orders": raw}, DAY, NEXT)
    assert records(found, "order_id") == [("o1",)]


def test_pieces_of_one_item_are_counted_and_a_second_delivery_is_not(spark: SparkSession):
    inputs = {
        "commerce.raw_items": frame(
            spark,
            sources.raw_items,
            item("i1", "o1", "A"),
            item("i2", "o1", "A"),
            item("i2", "o1", "A"),
            item("i3", "o1", "B"),
        ),
        "commerce.orders": frame(
            spark, models.orders, {"order_id": "o1", "order_date": DAY, "store_id": "s"}
        ),
        "commerce.raw_products": frame(
            spark, sources.raw_products, {"sku": "A", "price": 1100}, {"sku": "B", "price": 450}
        ),
    }
    found = computed(spark, models.fact_order_items, inputs, DAY, NEXT)
    columns = ("item_id", "store_id", "quantity", "unit_price", "amount")
    assert records(found, *columns) == [
        ("A", "s", "2", "11.00", "22.00"),
        ("B", "s", "1", "4.50", "4.50"),
    ]


def test_a_price_holds_until_the_next_one_and_the_last_correction_wins(spark: SparkSession):
    def price(cost: str, day: str, recorded: str) -> dict[str, str]:
        supply = {"supply_id": "S", "sku": "A", "cost": cost}
        return {**supply, "effective_from": day, "recorded_at": f"{recorded} 09:00:00"}

    raw = frame(
        spark,
        sources.raw_supply_prices,
        price("0.1000", "2018-01-01", "2018-01-01"),
        price("5.0000", "2018-12-01", "2018-12-01"),
        price("0.5000", "2018-12-01", "2018-12-03"),
    )
    inputs = {"commerce.raw_supply_prices": raw}
    found = computed(spark, models.cost_history, inputs, "1970-01-01", "2999-01-01")
    assert records(found, "cost", "effective_from", "effective_to") == [
        ("0.1000", "2018-01-01", "2018-12-01"),
        ("0.5000", "2018-12-01", None),
    ]


def test_an_order_costs_what_its_supplies_cost_on_its_day(spark: SparkSession):
    placed = {"customer_id": "c", "store_id": "s", "subtotal": "10.00"}
    before, after = "2018-11-30", "2018-12-01"
    inputs = {
        "commerce.orders": frame(
            spark,
            models.orders,
            {**placed, "order_id": "old", "order_date": before},
            {**placed, "order_id": "new", "order_date": after},
            {**placed, "order_id": "free", "order_date": after, "subtotal": "0"},
        ),
        "commerce.fact_order_items": frame(
            spark,
            models.fact_order_items,
            line("old", "A", 2, before),
            line("new", "A", 2, after),
            line("new", "B", 1, after),
        ),
        "commerce.cost_history": frame(
            spark,
            models.cost_history,
            {"sku": "A", "cost": "1", "effective_from": "2018-01-01", "effective_to": after},
            {"sku": "A", "cost": "1.25", "effective_from": after},
            {"sku": "B", "cost": "0.5", "effective_from": "2018-01-01"},
        ),
    }
    found = computed(spark, models.fact_orders, inputs, before, "2018-12-02")
    assert records(found, "order_id", "revenue", "cost", "margin") == [
        ("free", "0.00", "0.0000", None),
        ("new", "10.00", "3.0000", "0.7000"),
        ("old", "10.00", "2.0000", "0.8000"),
    ]


def test_gross_margin_is_per_day_and_store(spark: SparkSession):
    facts = frame(
        spark,
        models.fact_orders,
        fact("o1", "10.00", "2"),
        fact("o2", "30.00", "8"),
        fact("o3", "5.00", "5", store="t"),
        fact("o4", "1.00", "1", NEXT),
    )
    inputs = {"commerce.fact_orders": facts}
    found = computed(spark, models.gross_margin_daily, inputs, DAY, NEXT)
    assert records(found) == [
        (DAY, "s", "2", "40.00", "10.0000", "30.0000", "0.7500"),
        (DAY, "t", "1", "5.00", "5.0000", "0.0000", "0.0000"),
    ]


def test_weeks_start_on_monday_and_months_on_the_first(spark: SparkSession):
    def day(text: str) -> dict[str, str]:
        return {"order_date": text, "store_id": "s", "orders": "1", "revenue": "2.50"}

    days = map(day, ("2018-09-03", "2018-09-09", "2018-09-10", "2018-09-30", "2018-10-01"))
    inputs = {"commerce.gross_margin_daily": frame(spark, models.gross_margin_daily, *days)}
    weeks = computed(spark, models.revenue_weekly, inputs, "2018-09-03", "2018-09-17")
    assert records(weeks) == [
        ("2018-09-03", "s", "2", "5.00"),
        ("2018-09-10", "s", "1", "2.50"),
    ]
    months = computed(spark, models.revenue_monthly, inputs, "2018-09-01", "2018-10-01")
    assert records(months) == [("2018-09-01", "s", "4", "10.00")]


def test_every_order_of_the_extract_earns_more_than_it_costs(spark: SparkSession, tmp_path: Path):
    inputs = {}
    for table in landings(lambda: read_shop(EXTRACT), "the extract"):
        assert table(spark, tmp_path)
        inputs[table.source.name] = spark.read.format("delta").load(
            str(tmp_path / table.source.path)
        )
    for model in models.MODELS[:5]:
        rows = computed(spark, model, inputs, "2018-09-01", "2018-09-15")
        inputs[model.name] = rows.localCheckpoint()
    facts = inputs["commerce.fact_orders"]
    assert facts.count() == inputs["commerce.raw_orders"].count()
    assert facts.where("NOT (revenue >= cost AND cost >= 0)").isEmpty()
    assert facts.where("margin NOT BETWEEN 0 AND 1.5").isEmpty()
    assert facts.where("revenue > 0 AND (cost = 0 OR margin IS NULL)").isEmpty()
    items = inputs["commerce.fact_order_items"]
    assert items.agg(F.sum("quantity")).first()[0] == inputs["commerce.raw_items"].count()
    assert items.agg(F.sum("amount")).first()[0] == facts.agg(F.sum("revenue")).first()[0]
