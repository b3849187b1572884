"""The whole way as a person goes it: every command a process of its own, in the package's folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.stories import oracle
from backfill_assets_tests.stories.checking import assert_published
from backfill_assets_tests.stories.edits import worth_six_dollars
from backfill_assets_tests.stories.project import LAST_OF_QUARTER, PERFORMANCE, ROI

if TYPE_CHECKING:
    from backfill_assets_tests.stories.project import Ended, Project

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.story]


def test_edit_plan_read_apply_diff_promote_and_roll_back(quarter: Project):
    old = oracle.history(quarter, last=LAST_OF_QUARTER)
    new = old | {ROI: oracle.roi(old[PERFORMANCE], worth="6.00")}
    assert "nothing to do" in do(quarter, "plan").out
    worth_six_dollars(quarter)

    planned = do(quarter, "plan", "--reason", "agreed with finance", code=2)
    assert "Nothing has been written" in planned.out
    assert "6.00 - cost_per_acquisition" in planned.out
    [plan] = set(re.findall(r"\bp[0-9a-f]{9}\b", planned.out))
    assert do(quarter, "show", plan).out.splitlines()[0] == planned.out.splitlines()[0]
    assert do(quarter, "show", plan, "--markdown").out.startswith("#")

    applied = do(quarter, "apply", plan)
    assert f"backfill promote {plan}" in applied.out
    assert_published(quarter, old)
    assert ROI in do(quarter, "diff", plan, code=2).out
    assert "no terminal to ask on" in do(quarter, "promote", plan, code=1).err
    do(quarter, "promote", plan, "--yes")
    assert_published(quarter, new)
    assert plan in do(quarter, "history", ROI, "2024-02-01").out

    do(quarter, "rollback", plan, "--yes", "--reason", "agreed otherwise")
    assert_published(quarter, old)
    assert "nothing to do" in do(quarter, "run").out


def do(project: Project, *words: str, code: int = 0) -> Ended:
    """Run a process and insist on how it ends; nothing of an engine's reaches the person."""
    ended = project.process(*words)
    assert ended.code == code, ended
    assert "Traceback" not in ended.err
    return ended
