SELECT
  CAST(DATE_TRUNC('WEEK', order_date) AS DATE) AS week_start,
  store_id,
  CAST(SUM(orders) AS BIGINT) AS orders,
  CAST(SUM(revenue) AS DECIMAL(18, 2)) AS revenue
FROM commerce.gross_margin_daily
WHERE order_date >= :start_ds AND order_date < :end_ds
GROUP BY 1, 2
