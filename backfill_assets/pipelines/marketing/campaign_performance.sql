WITH totals AS (
  SELECT
    event_date AS ds,
    channel,
    campaign_id,
    COUNT_IF(event_type = 'impression') AS impressions,
    COUNT_IF(event_type = 'click') AS clicks,
    COUNT_IF(event_type = 'conversion') AS conversions,
    CAST(SUM(cost) AS DECIMAL(18, 4)) AS cost
  FROM marketing.ad_events
  WHERE event_date >= :start_ds AND event_date < :end_ds
  GROUP BY event_date, channel, campaign_id
)
SELECT
  ds,
  channel,
  campaign_id,
  impressions,
  clicks,
  clicks / NULLIF(impressions, 0) AS ctr,
  CAST(cost / NULLIF(clicks, 0) AS DECIMAL(18, 4)) AS cpc,
  conversions,
  cost,
  CAST(cost / NULLIF(conversions, 0) AS DECIMAL(18, 4)) AS cost_per_acquisition
FROM totals
