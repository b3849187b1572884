from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families

from backfill_assets.cli.verbs import metrics as verb
from backfill_assets.state.database import StateUnavailableError

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared


def samples(text: str, model: str | None = "toy.sales") -> dict[str, float]:
    """Read what Prometheus would read, of one model or of what has none."""
    return {
        sample.name: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.labels.get("model") == model
    }


def test_cells_are_counted_by_model_as_status_counts_them(shop: Prepared, backfill: Backfill):
    shop.fill("toy.sales", "2024-01-28", "2024-01-30")
    shop.claim("toy.sales", "2024-01-31", "2024-02-01")

    read = samples(backfill("metrics", "--select", "toy.sales").out)
    (row,) = backfill("status", "--select", "toy.sales", "--json").json["models"]

    assert {name: read[f"backfill_{name}_cells"] for name in ("ready", "missing", "stale")} == {
        name: row[name] for name in ("ready", "missing", "stale")
    }
    assert read["backfill_claimed_cells"] == 2
    assert read["backfill_oldest_gap_timestamp_seconds"] == 1_706_659_200  # 2024-01-31


def test_a_failure_has_a_time_until_its_cells_are_built(shop: Prepared, backfill: Backfill):
    shop.fail("toy.sales", "2024-01-28", "2024-02-03", "an amount is negative")
    failed = samples(backfill("metrics").out)
    shop.fill("toy.sales", "2024-01-28", "2024-02-03")
    built = samples(backfill("metrics").out)

    assert failed["backfill_last_failure_timestamp_seconds"] > 1_700_000_000
    assert "backfill_last_failure_timestamp_seconds" not in built
    assert "backfill_oldest_gap_timestamp_seconds" not in built


def test_batches_in_flight_are_counted_over_all_models(shop: Prepared, backfill: Backfill):
    shop.claim("toy.sales", "2024-01-28", "2024-01-28")

    read = samples(backfill("metrics").out, model=None)

    assert read == {
        "backfill_state_up": 1,
        "backfill_batches_in_flight": 1,
        "backfill_batches_waiting": 0,
        "backfill_queue_wait_seconds": 0,
    }


def test_a_state_that_cannot_be_read_is_told_as_such(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    def away(*_: object) -> None:
        raise StateUnavailableError("postgresql://host/name", "it does not answer")

    monkeypatch.setattr(verb, "looking", away)

    ended = backfill("metrics")

    assert (ended.code, samples(ended.out, model=None)) == (0, {"backfill_state_up": 0})
    assert "it does not answer" in ended.err


def test_scrapes_are_answered_with_what_is_recorded_then(
    shop: Prepared, monkeypatch: pytest.MonkeyPatch
):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    monkeypatch.setattr(threading.Thread, "join", lambda *_: None)

    verb.metrics(serve=str(port))
    before = samples(_scraped(port))
    shop.fill("toy.sales", "2024-01-28", "2024-01-30")

    assert samples(_scraped(port))["backfill_ready_cells"] == before["backfill_ready_cells"] + 3


def _scraped(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        return answer.read().decode()


@pytest.mark.parametrize("wrong", ["lots", "0", "host:", "70000"])
def test_what_is_no_port_is_refused(backfill: Backfill, wrong: str):
    ended = backfill("metrics", "--serve", wrong)

    assert ended.code == 1
    assert f"--serve {wrong}; expected a port, or HOST:PORT" in ended.err
