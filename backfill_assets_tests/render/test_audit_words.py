from __future__ import annotations

from dataclasses import replace

from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.render.audit_words import audit_lines, blocks

DAYS = tuple(f"2024-01-0{number}" for number in range(1, 8))
FAILED = AuditResult(
    audit="cost_is_usual",
    severity=Severity.BLOCKING,
    passed=False,
    found="9 rows",
    allowed="0 rows",
    failing_rows=9,
    cells=DAYS,
)
PASSED = replace(FAILED, passed=True, found="0 rows", failing_rows=0, cells=())
WARNED = replace(FAILED, audit="same_sum", severity=Severity.WARNING, cells=())


def test_changed_audits_are_told_with_what_they_found_and_where():
    first = ", ".join(DAYS[:5])

    told = list(audit_lines({"web.a": (PASSED,), "web.b": (PASSED, FAILED, WARNED)}))

    assert told == [
        "audited web.a: 1 changed audit on what stays published, 1 passed",
        "audited web.b: 3 changed audits on what stays published, 1 passed",
        f"  cost_is_usual (blocking) failed in {first}, ...: found 9 rows, allowed 0 rows",
        "  same_sum (warning) failed: found 9 rows, allowed 0 rows",
    ]


def test_only_a_failed_blocking_audit_blocks():
    assert blocks({"web.b": (PASSED, FAILED)})
    assert not blocks({"web.b": (PASSED, WARNED)})
    assert not blocks({})
