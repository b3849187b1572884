"""The history of audits of published data."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.state import published_audits
from backfill_assets.state.published_audits import AuditedPublication
from backfill_assets.state.store import Store
from backfill_assets_tests.builders import days
from backfill_assets_tests.state.building import NOON

if TYPE_CHECKING:
    import pytest

    from backfill_assets_tests.state.building import Clock

OF = AuditedPublication("prod", "web.visits", "v1", 7, days(1, 2, 4))
PASSED = AuditResult(
    "cost", Severity.BLOCKING, passed=True, found="0 of 3 rows fail cost >= 0", allowed="0 rows"
)
FAILED = replace(
    PASSED, passed=False, failing_rows=1, cells=("2024-01-02",), sample=('{"id":1,"cost":"***"}',)
)
ROWS = replace(PASSED, audit="rows", severity=Severity.WARNING)


def test_what_audits_found_is_read_the_last_time_first(store: Store, clock: Clock):
    store.published_audits.keep(OF, [ROWS, PASSED])
    clock.now += timedelta(hours=1)
    store.published_audits.keep(replace(OF, delta_version=8), [FAILED])

    found = store.published_audits.history("prod", "web.visits")

    assert [row.result for row in found] == [FAILED, PASSED, ROWS]
    assert [row.of for row in found] == [replace(OF, delta_version=8), OF, OF]
    assert found[0].audited_at - found[1].audited_at == timedelta(hours=1)


def test_results_of_one_audit_have_one_time_however_long_it_takes(url: str):
    ticks = (NOON + timedelta(seconds=number) for number in count())
    with Store.open(url, clock=lambda: next(ticks), lease_seconds=60.0) as store:
        store.published_audits.keep(OF, [ROWS, PASSED])
        found = store.published_audits.history("prod", "web.visits")
    assert len({row.audited_at for row in found}) == 1
    assert [row.result.audit for row in found] == ["cost", "rows"]


def test_other_models_and_environments_have_a_history_of_their_own(store: Store):
    store.published_audits.keep(OF, [PASSED])
    store.published_audits.keep(replace(OF, environment="dev"), [FAILED])
    store.published_audits.keep(replace(OF, model="web.costs"), [])

    assert [row.result for row in store.published_audits.history("dev", "web.visits")] == [FAILED]
    assert store.published_audits.history("prod", "web.costs") == []


def test_only_the_last_times_are_kept(store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(published_audits, "KEPT", 2)
    other = replace(OF, model="web.costs")
    store.published_audits.keep(other, [ROWS])
    for number in range(4):
        clock.now += timedelta(hours=1)
        store.published_audits.keep(replace(OF, delta_version=number), [PASSED, ROWS])

    kept = [row.of.delta_version for row in store.published_audits.history("prod", "web.visits")]
    assert kept == [3, 3, 2, 2]
    assert len(store.published_audits.history("prod", "web.costs")) == 1
