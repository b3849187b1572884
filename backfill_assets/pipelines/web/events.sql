-- A view that was delivered twice is one view: the model keeps the latest delivery (latest_by).
SELECT event_id, event_time, event_date, user_id, page, ingested_at
FROM web.raw_events
WHERE event_time >= :start_ts AND event_time < :end_ts
