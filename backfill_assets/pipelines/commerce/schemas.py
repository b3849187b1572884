"""The columns of the commerce models. Amounts are dollars."""

from __future__ import annotations

from typing import Annotated

import pandera.pyspark as pa
import pyspark.sql.types as T  # noqa: TC002 - pandera reads the annotations when it runs


class Orders(pa.DataFrameModel):
    """One row per order."""

    order_id: T.StringType = pa.Field(description="as the shop gave it")
    customer_id: T.StringType = pa.Field(description="the customer who ordered")
    store_id: T.StringType = pa.Field(description="the store that sold")
    subtotal: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0, description="before tax")
    tax_paid: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0, description="on the subtotal")
    order_total: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0, description="subtotal and tax")
    ordered_at: T.TimestampType = pa.Field(description="UTC")
    order_date: T.DateType = pa.Field(description="UTC day of ordered_at")
    updated_at: T.TimestampType = pa.Field(
        description="UTC; of several versions of an order the latest counts"
    )


class FactOrderItems(pa.DataFrameModel):
    """One row per order and item of the menu in it."""

    order_id: T.StringType = pa.Field(description="the order")
    item_id: T.StringType = pa.Field(description="the item of the menu: its sku")
    store_id: T.StringType = pa.Field(description="the store that sold")
    quantity: T.LongType = pa.Field(description="pieces of the item in the order")
    unit_price: Annotated[T.DecimalType, 18, 2] = pa.Field(
        ge=0, description="of one piece, before tax"
    )
    amount: Annotated[T.DecimalType, 18, 2] = pa.Field(
        ge=0, description="quantity times unit_price"
    )
    order_date: T.DateType = pa.Field(description="UTC day of the order")


class CostHistory(pa.DataFrameModel):
    """One row per supply, product and stretch of time in which its cost was valid."""

    supply_id: T.StringType = pa.Field(description="what the product is made of")
    sku: T.StringType = pa.Field(description="the product")
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0, description="per piece sold")
    effective_from: T.DateType = pa.Field(description="first day on which the cost is valid")
    effective_to: T.DateType = pa.Field(nullable=True, description="exclusive; NULL: still valid")


class FactOrders(pa.DataFrameModel):
    """One row per order, with what it brought and what it cost."""

    order_id: T.StringType = pa.Field(description="the order")
    customer_id: T.StringType = pa.Field(description="the customer who ordered")
    store_id: T.StringType = pa.Field(description="the store that sold")
    revenue: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0, description="before tax")
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0, description="valid on the order date")
    margin: Annotated[T.DecimalType, 9, 4] = pa.Field(
        nullable=True, description="share of revenue that cost leaves; NULL without revenue"
    )
    order_date: T.DateType = pa.Field(description="UTC day of the order")


class GrossMarginDaily(pa.DataFrameModel):
    """One row per day and store."""

    order_date: T.DateType = pa.Field(description="UTC day of the orders")
    store_id: T.StringType = pa.Field(description="the store that sold")
    orders: T.LongType = pa.Field(ge=0, description="number of orders")
    revenue: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0, description="before tax")
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0, description="valid on the order date")
    gross_margin: Annotated[T.DecimalType, 18, 4] = pa.Field(description="revenue less cost")
    margin: Annotated[T.DecimalType, 9, 4] = pa.Field(
        nullable=True, description="gross_margin / revenue; NULL without revenue"
    )


class RevenueWeekly(pa.DataFrameModel):
    """One row per week and store."""

    week_start: T.DateType = pa.Field(description="a Monday")
    store_id: T.StringType = pa.Field(description="the store that sold")
    orders: T.LongType = pa.Field(ge=0, description="number of orders")
    revenue: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0, description="before tax")


class RevenueMonthly(pa.DataFrameModel):
    """One row per month and store."""

    month_start: T.DateType = pa.Field(description="first day of the month, UTC")
    store_id: T.StringType = pa.Field(description="the store that sold")
    orders: T.LongType = pa.Field(ge=0, description="number of orders")
    revenue: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0, description="before tax")
