from __future__ import annotations

from pathlib import Path

import pytest

from backfill_assets.settings import InvalidSettingError, Settings, read_settings


def test_operators_are_names_with_commas_between_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BACKFILL_OPERATORS", "ann, bob,")

    assert read_settings().operators == ("ann", "bob")


def test_what_can_be_made_again_lies_with_the_data_or_beside_us():
    assert Settings(data_dir="/data").cache == Path("/data/.cache")
    assert Settings(data_dir="s3://bucket/data").cache == Path(".backfill")
    assert Settings(data_dir="/data", cache_dir="/cache").cache == Path("/cache")


@pytest.mark.parametrize(
    ("name", "value"),
    [("PLAN_DAYS", "0"), ("PROMISE_DAYS", "-1"), ("PRICE_PER_HOUR", "dear")],
)
def test_a_setting_that_cannot_be_is_named(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    monkeypatch.setenv(f"BACKFILL_{name}", value)

    with pytest.raises(InvalidSettingError, match=f"BACKFILL_{name} is '{value}'"):
        read_settings()
