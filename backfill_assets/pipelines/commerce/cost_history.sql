-- A price holds until the next one takes effect; of two for one day the later recorded is right.
WITH prices AS (
  SELECT supply_id, sku, effective_from, MAX_BY(cost, recorded_at) AS cost
  FROM commerce.raw_supply_prices
  GROUP BY supply_id, sku, effective_from
)
SELECT
  supply_id,
  sku,
  cost,
  effective_from,
  LEAD(effective_from) OVER (PARTITION BY supply_id, sku ORDER BY effective_from) AS effective_to
FROM prices
