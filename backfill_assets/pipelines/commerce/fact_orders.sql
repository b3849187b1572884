-- An order's cost is what its items' supplies cost on the day of the order, not today.
WITH costs AS (
  SELECT item.order_id, SUM(item.quantity * supply.cost) AS cost
  FROM commerce.fact_order_items AS item
  JOIN commerce.cost_history AS supply
    ON supply.sku = item.item_id
    AND item.order_date >= supply.effective_from
    AND (supply.effective_to IS NULL OR item.order_date < supply.effective_to)
  WHERE item.order_date >= :start_ds AND item.order_date < :end_ds
  GROUP BY item.order_id
)
SELECT
  placed.order_id,
  placed.customer_id,
  placed.store_id,
  placed.subtotal AS revenue,
  CAST(COALESCE(costs.cost, 0) AS DECIMAL(18, 4)) AS cost,
  CAST(
    (placed.subtotal - COALESCE(costs.cost, 0)) / NULLIF(placed.subtotal, 0) AS DECIMAL(9, 4)
  ) AS margin,
  placed.order_date
FROM commerce.orders AS placed
LEFT JOIN costs ON costs.order_id = placed.order_id
WHERE placed.order_date >= :start_ds AND placed.order_date < :end_ds
