"""The columns of the commerce models. Amounts are dollars."""

from __future__ import annotations

from typing import Annotated

import pandera.pyspark as pa
import pyspark.sql.types as T  # noqa: TC002 - pandera reads the annotations when it runs


class Orders(pa.DataFrameModel):
    """One row per order."""

    order_id: T.StringType
    customer_id: T.StringType
    store_id: T.StringType
    subtotal: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0, description="before tax")
    tax_paid: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0)
    order_total: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0)
    ordered_at: T.TimestampType
    order_date: T.DateType = pa.Field(description="UTC day of ordered_at")
    updated_at: T.TimestampType


class FactOrderItems(pa.DataFrameModel):
    """One row per order and item of the menu in it."""

    order_id: T.StringType
    item_id: T.StringType = pa.Field(description="the item of the menu: its sku")
    store_id: T.StringType
    quantity: T.LongType
    unit_price: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0)
    amount: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0)
    order_date: T.DateType


class CostHistory(pa.DataFrameModel):
    """One row per supply, product and stretch of time in which its cost was valid."""

    supply_id: T.StringType
    sku: T.StringType
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0, description="per piece sold")
    effective_from: T.DateType
    effective_to: T.DateType = pa.Field(nullable=True, description="exclusive; NULL: still valid")


class FactOrders(pa.DataFrameModel):
    """One row per order, with what it brought and what it cost."""

    order_id: T.StringType
    customer_id: T.StringType
    store_id: T.StringType
    revenue: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0, description="before tax")
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0, description="valid on the order date")
    margin: Annotated[T.DecimalType, 9, 4] = pa.Field(
        nullable=True, description="share of revenue that cost leaves; NULL without revenue"
    )
    order_date: T.DateType


class GrossMarginDaily(pa.DataFrameModel):
    """One row per day and store."""

    order_date: T.DateType
    store_id: T.StringType
    orders: T.LongType = pa.Field(ge=0)
    revenue: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0)
    cost: Annotated[T.DecimalType, 18, 4] = pa.Field(ge=0)
    gross_margin: Annotated[T.DecimalType, 18, 4] = pa.Field(description="revenue less cost")
    margin: Annotated[T.DecimalType, 9, 4] = pa.Field(
        nullable=True, description="gross_margin / revenue; NULL without revenue"
    )


class RevenueWeekly(pa.DataFrameModel):
    """One row per week and store."""

    week_start: T.DateType = pa.Field(description="a Monday")
    store_id: T.StringType
    orders: T.LongType = pa.Field(ge=0)
    revenue: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0)


class RevenueMonthly(pa.DataFrameModel):
    """One row per month and store."""

    month_start: T.DateType
    store_id: T.StringType
    orders: T.LongType = pa.Field(ge=0)
    revenue: Annotated[T.DecimalType, 18, 2] = pa.Field(ge=0)
