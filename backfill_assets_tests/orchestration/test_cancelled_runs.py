"""A run that is cancelled in the UI: Dagster sends its process SIGINT, in the midst of a batch."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from backfill_assets.engine.batch import effects
from backfill_assets.engine.batch.effects import Effects
from backfill_assets.orchestration.resources import StateResource
from backfill_assets.snapshots.failure import FailureKind

if TYPE_CHECKING:
    from backfill_assets_tests.orchestration.shop import Shop

pytestmark = pytest.mark.spark
DAY = "2024-01-28"


def test_its_batches_are_cancelled_their_cells_free_at_once_and_the_next_run_fills_them(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
):
    def cancel() -> None:
        [run] = shop.instance.get_runs()
        shop.instance.report_run_canceling(run)
        os.kill(os.getpid(), signal.SIGINT)

    def endless(session: Any, *_: object) -> Any:  # noqa: ANN401
        threading.Timer(1.0, cancel).start()
        return session.sql(
            f"SELECT DATE'{DAY}' AS ds, string(id) AS shop, CAST(1 AS DECIMAL(18,2)) AS amount "  # noqa: S608
            "FROM range(1000000000000000) WHERE id % 7 = 8"
        )

    monkeypatch.setattr(effects, "USUAL", Effects(rows=endless))
    assert not shop.fill("toy.sales", cells=DAY).success

    [run] = shop.instance.get_runs()
    assert run.status is dg.DagsterRunStatus.CANCELED
    state = StateResource()
    (batch,) = state.store.batches.latest(model="toy.sales")
    assert (batch.status, batch.failure) == ("failed", FailureKind.CANCELLED)
    assert "was cancelled before the commit" in str(batch.error)
    assert state.store.limits.in_flight() == ()
    state.store.close()
    monkeypatch.setattr(effects, "USUAL", Effects())
    assert shop.fill("toy.sales", cells=DAY).success
