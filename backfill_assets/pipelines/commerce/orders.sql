-- Cents become dollars. Of several changes of an order the model keeps the latest (latest_by).
SELECT
  id AS order_id,
  customer AS customer_id,
  store_id,
  CAST(subtotal * 0.01 AS DECIMAL(18, 2)) AS subtotal,
  CAST(tax_paid * 0.01 AS DECIMAL(18, 2)) AS tax_paid,
  CAST(order_total * 0.01 AS DECIMAL(18, 2)) AS order_total,
  ordered_at,
  order_date,
  updated_at
FROM commerce.raw_orders
WHERE order_date >= :start_ds AND order_date < :end_ds
