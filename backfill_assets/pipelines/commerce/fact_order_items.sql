-- The shop writes a row per piece. A piece that the feed delivers twice still counts once.
SELECT
  item.order_id,
  item.sku AS item_id,
  MAX(placed.store_id) AS store_id,
  COUNT(DISTINCT item.id) AS quantity,
  CAST(MAX(product.price) * 0.01 AS DECIMAL(18, 2)) AS unit_price,
  CAST(COUNT(DISTINCT item.id) * MAX(product.price) * 0.01 AS DECIMAL(18, 2)) AS amount,
  item.order_date
FROM commerce.raw_items AS item
LEFT JOIN commerce.orders AS placed
  ON placed.order_id = item.order_id AND placed.order_date = item.order_date
LEFT JOIN commerce.raw_products AS product ON product.sku = item.sku
WHERE item.order_date >= :start_ds AND item.order_date < :end_ds
GROUP BY item.order_id, item.sku, item.order_date
