from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

from backfill_assets.models.audit import Severity
from backfill_assets.models.audit_result import AuditResult
from backfill_assets.render.junit import junit_xml

PASSED = AuditResult(
    "unique_grain", Severity.BLOCKING, passed=True, found="0 of 2 rows fail", allowed="0 rows"
)
FAILED = AuditResult(
    "positive", Severity.BLOCKING, passed=False, found="1 of 2 rows fail cost > 0", allowed="0 rows",
    failing_rows=1, cells=("2024-01-02",), sample=('{"cost":-1,"note":"<&"}',),
)  # fmt: skip
WARNED = AuditResult(
    "small", Severity.WARNING, passed=False, found="1 of 2 rows fail", allowed="0 rows"
)


def test_a_blocking_failure_is_a_failed_case_with_its_numbers_and_rows():
    root = ET.fromstring(junit_xml({"web.visits": [PASSED, FAILED, WARNED], "web.empty": []}, {}))  # noqa: S314

    suite, empty = root.findall("testsuite")
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == (
        "web.visits",
        "3",
        "1",
    )
    assert (empty.get("tests"), empty.get("failures")) == ("0", "0")
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "found 1 of 2 rows fail cost > 0, allowed 0 rows in 2024-01-02"
    assert '{"cost":-1,"note":"<&"}' in str(failure.text)


def test_a_warning_passes_and_says_so():
    root = ET.fromstring(junit_xml({"web.visits": [WARNED]}, {}))  # noqa: S314

    (said,) = root.iter("system-out")
    assert str(said.text).startswith("warning: found")
    assert not [*root.iter("failure")]


def test_a_model_that_can_not_be_read_is_an_error_of_its_own():
    root = ET.fromstring(junit_xml({}, {"web.visits": "its files are gone"}))  # noqa: S314

    (suite,) = root.iter("testsuite")
    assert (suite.get("name"), suite.get("errors")) == ("web.visits", "1")
    assert [error.get("message") for error in root.iter("error")] == ["its files are gone"]


def test_a_character_that_xml_does_not_have_is_replaced():
    odd = replace(FAILED, found="fails the query '\x1b'", sample=('{"name":"\ufffe"}',))

    both = {"web.visits": [odd, replace(odd, severity=Severity.WARNING)]}
    root = ET.fromstring(junit_xml(both, {}))  # noqa: S314

    (failure,) = root.iter("failure")
    assert "the query '\N{REPLACEMENT CHARACTER}'" in str(failure.get("message"))
    assert str(failure.text).endswith('{"name":"\N{REPLACEMENT CHARACTER}"}')
