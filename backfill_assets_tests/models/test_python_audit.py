"""An audit in Python is told apart by its code, as a Python model is, and it decides no row."""

from __future__ import annotations

import re

import pytest

from backfill_assets.errors import DeclarationError
from backfill_assets.models.audit import PythonAudit, Severity, python_audit
from backfill_assets.models.codec import dumps
from backfill_assets.models.fingerprint import Fingerprint, changed_models, fingerprints
from backfill_assets.models.python.function_query import ModuleQuery
from backfill_assets.models.python.own_modules import StoredModule
from backfill_assets.planning.change.declared_change import declared_changes, described_changes
from backfill_assets.planning.change.model_diff import model_diff
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets_tests.builders import a_graph, a_model

NEGATIVE = 'LIMIT = 0\n\n\ndef below(rows):\n    return rows.where(f"cost < {LIMIT}")\n'


def audit(text: str = NEGATIVE, severity: Severity = Severity.BLOCKING) -> PythonAudit:
    return PythonAudit(
        "below", ModuleQuery("below", "checks", (StoredModule("checks", text),)), severity
    )


def fingerprint(audited: PythonAudit) -> Fingerprint:
    return fingerprints(a_graph(a_model(audits=[audited])))["web.visits"]


SAME = [
    NEGATIVE + "# a comment\n",
    NEGATIVE.replace("\n\n\n", "\n"),
    NEGATIVE + "\n\ndef another(rows):\n    return rows\n",
]
OTHER = [
    NEGATIVE.replace("cost <", "cost <="),
    NEGATIVE.replace("LIMIT = 0", "LIMIT = 1"),
]


@pytest.mark.parametrize("text", SAME)
def test_an_edit_that_leaves_its_code_changes_nothing(text: str):
    old, new = a_model(audits=[audit()]), a_model(audits=[audit(text)])

    assert (audit(text), hash(audit(text))) == (audit(), hash(audit()))
    assert fingerprint(audit(text)) == fingerprint(audit())
    assert described_changes(old, new) == ()


@pytest.mark.parametrize("edited", [*map(audit, OTHER), audit(severity=Severity.WARNING)])
def test_another_audit_rebuilds_no_row(edited: PythonAudit):
    old, new = a_model(audits=[audit()]), a_model(audits=[edited])
    before, after = fingerprint(audit()), fingerprint(edited)

    assert edited != audit()
    assert before.data == after.data
    assert before.metadata != after.metadata
    assert described_changes(old, new) == ("audits",)
    assert declared_changes(old, new) == ()
    assert changed_models(a_graph(old), a_graph(new)) == frozenset()


def test_a_plan_shows_the_lines_of_an_audit_that_changed():
    text = model_diff(a_model(audits=[audit()]), a_model(audits=[audit(OTHER[0])]))

    assert text.startswith("@@ audits @@")
    assert re.findall("^[-+] .*", text, re.MULTILINE) == [
        "-     return rows.where(f'cost < {LIMIT}')",
        "+     return rows.where(f'cost <= {LIMIT}')",
    ]


def test_it_is_stored_with_its_modules_and_read_back():
    model = a_model(audits=[audit()])
    (kept,) = stored_model(dumps(model)).audits

    assert isinstance(kept, PythonAudit)
    assert kept.query == audit().query
    assert model.functions == (audit().query,)


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ("rows.sparkSession.table('shop.prices')", "table"),
        ("rows.where(open('limit').read())", "open"),
        ("rows.where('day < current_date')", "current_date"),
    ],
)
def test_it_may_read_nothing_but_its_rows(body: str, named: str):
    reads_more = audit(f"def below(rows):\n    return {body}\n")

    with pytest.raises(DeclarationError, match=named):
        a_graph(a_model(audits=[reads_more]))


def test_a_function_without_a_module_is_refused_where_it_is_declared():
    with pytest.raises(DeclarationError, match="at the top level of a module"):
        python_audit("below", lambda rows: rows)
