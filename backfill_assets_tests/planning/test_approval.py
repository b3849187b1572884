"""What is signed, and what makes it void."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from backfill_assets.planning.review.approval import (
    Act,
    Statement,
    StatementError,
    read_statement,
    statement_text,
    void_because,
)

NOW = datetime(2024, 6, 1, 12, tzinfo=UTC)
PARTS = {"plan": "1" * 64, "built cells": "2" * 64}
SIGNED = Statement(
    act=Act.APPROVE,
    plan_id="p1",
    environment="prod",
    at=NOW,
    expires=NOW + timedelta(days=7),
    reason="agreed",
    parts=PARTS,
)


@given(st.text(), st.sampled_from(Act), st.dictionaries(st.text(), st.text()))
def test_a_statement_is_read_as_it_was_written(reason: str, act: Act, parts: dict[str, str]):
    said = replace(SIGNED, act=act, reason=reason, parts=parts)

    assert read_statement(statement_text(said)) == said


@pytest.mark.parametrize("edit", [("p1", "p2"), ("\n", "\n "), ("approve", "agree"), ("{", "[")])
def test_an_edited_text_is_no_statement_or_another_one(edit: tuple[str, str]):
    text = statement_text(SIGNED).replace(*edit)

    try:
        assert read_statement(text) != SIGNED
    except StatementError as error:
        assert "can't be read" in str(error)  # noqa: PT017 - both are right


def why(statement: Statement = SIGNED, **now: object) -> str:
    given = {"plan_id": "p1", "parts": PARTS, "now": NOW, **now}
    return void_because(statement, **given)


def test_an_approval_counts_for_its_plan_its_parts_and_its_time_alone():
    assert why() == ""
    assert why(plan_id="p2") == "it is one of plan p1"
    assert why(now=NOW + timedelta(days=7)) == "it expired at 2024-06-08 12:00 UTC"
    assert "which is to come" in why(now=NOW - timedelta(hours=1))
    assert why(replace(SIGNED, act=Act.PROMOTE)) == "it was signed to promote, not to approve"
    assert why(parts={**PARTS, "built cells": "3" * 64}) == "changed since: built cells"
    assert why(parts={**PARTS, "contract": "4" * 64}) == "changed since: contract"
    assert why(parts={"plan": "1" * 64}) == "changed since: built cells"


def test_an_objection_is_void_once_the_plan_is_built_otherwise_and_for_no_other_change():
    objection, acts = replace(SIGNED, act=Act.OBJECT), [Act.ACKNOWLEDGE, Act.OBJECT]

    assert why(objection, acts=acts, parts={**PARTS, "policy": "3" * 64}) == ""
    rebuilt = {**PARTS, "built cells": "3" * 64}
    assert why(objection, acts=acts, parts=rebuilt) == "changed since: built cells"
