SELECT
  order_date,
  store_id,
  COUNT(*) AS orders,
  CAST(SUM(revenue) AS DECIMAL(18, 2)) AS revenue,
  CAST(SUM(cost) AS DECIMAL(18, 4)) AS cost,
  CAST(SUM(revenue) - SUM(cost) AS DECIMAL(18, 4)) AS gross_margin,
  CAST((SUM(revenue) - SUM(cost)) / NULLIF(SUM(revenue), 0) AS DECIMAL(9, 4)) AS margin
FROM commerce.fact_orders
WHERE order_date >= :start_ds AND order_date < :end_ds
GROUP BY order_date, store_id
