"""Cases with known answers, and their runner: `python -m backfill_assets_tests.vectors [PATH...]`."""
