-- Reads one month more than it writes: each month is compared with the calendar month before it.
WITH months AS (
  SELECT
    CAST(DATE_TRUNC('MONTH', ds) AS DATE) AS month_start,
    campaign_id,
    SUM(impressions) AS impressions,
    SUM(clicks) AS clicks,
    SUM(conversions) AS conversions,
    CAST(SUM(cost) AS DECIMAL(18, 4)) AS cost
  FROM marketing.campaign_performance
  WHERE ds >= ADD_MONTHS(:start_ds, -1) AND ds < :end_ds
  GROUP BY 1, 2
)
SELECT
  month.month_start,
  month.campaign_id,
  month.impressions,
  month.clicks,
  month.conversions,
  month.cost,
  previous.conversions AS previous_conversions,
  previous.cost AS previous_cost,
  CAST(
    (month.cost - previous.cost) / NULLIF(previous.cost, 0) AS DECIMAL(18, 6)
  ) AS cost_change
FROM months AS month
LEFT JOIN months AS previous
  ON previous.campaign_id = month.campaign_id
  AND previous.month_start = ADD_MONTHS(month.month_start, -1)
WHERE month.month_start >= :start_ds AND month.month_start < :end_ds
