-- An acquisition is worth 5.00 dollars to us: agreed with finance, the same for every campaign.
SELECT
  ds,
  channel,
  campaign_id,
  conversions,
  cost,
  cost_per_acquisition,
  CAST(
    (5.00 - cost_per_acquisition) / NULLIF(cost_per_acquisition, 0) AS DECIMAL(18, 6)
  ) AS roi
FROM marketing.campaign_performance
WHERE ds >= :start_ds AND ds < :end_ds
