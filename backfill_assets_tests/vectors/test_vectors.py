from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from backfill_assets_tests.vectors.__main__ import main
from backfill_assets_tests.vectors.answers import NotSupportedYet
from backfill_assets_tests.vectors.runner import (
    CASES,
    cases_of,
    default_files,
    differences,
    judge,
)

ANSWERED = [case for file in default_files() for case in cases_of(file)]


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: case["id"])
def test_a_case_has_its_known_answer(case: dict[str, Any]):
    assert judge(case) is None


def test_every_difference_names_an_existing_case_and_a_reason():
    ids = {case["id"] for file in CASES.glob("*.json") for case in cases_of(file)}
    assert differences().keys() <= ids
    assert all(each["reason"].endswith(".") for each in differences().values())


def test_a_difference_really_differs():
    expected = {case["id"]: case["expected"] for case in ANSWERED}
    assert [i for i, ours in differences().items() if ours["expected"] == expected.get(i)] == []


def test_the_runner_ends_with_the_counts_and_fails_with_a_failing_case(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    case = {"id": "x-1", "name": "wrong", "call": {"fn": "merge", "intervals": []}, "expected": [1]}
    right = {**case, "id": "x-2", "expected": []}
    later = {**case, "id": "x-3", "call": {"fn": "dance"}}
    chokes = {**case, "id": "x-4", "call": {"fn": "merge"}}
    cases = {"cases": [case, right, later, chokes]}
    (tmp_path / "some.json").write_text(json.dumps(cases), encoding="utf-8")

    assert main([str(tmp_path)]) == 1

    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" (")[0] for line in lines[:2]] == ["FAILED x-1", "FAILED x-4"]
    assert lines[2] == "skipped, built by a later stage: some.json 1 (dance)"
    assert lines[-1] == "1 passed, 2 failed, 1 skipped"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"call": {"fn": "dance"}}, "dance"),
        ({"call": {"fn": "merge", "intervals": [], "twice": True}}, "merge with twice"),
        ({"model": {"kind": "SEED"}}, "merge with kind SEED"),
        ({"model": {"moon": 1}}, "merge with moon"),
        ({"state": {"dev_intervals": []}}, "merge with dev_intervals"),
        (
            {
                "call": {
                    "fn": "categorize",
                    "old_sql": "SELECT 1",
                    "new_sql": "SELECT 1",
                    "new_meta": {"moon": 1},
                }
            },
            "categorize with moon",
        ),
    ],
)
def test_what_is_not_understood_is_named(change: dict[str, Any], named: str):
    with pytest.raises(NotSupportedYet, match=f"^{named}$"):
        judge({"id": "x", "call": {"fn": "merge", "intervals": []}, "expected": [], **change})


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main([str(tmp_path / "none.json")]) == 2
    assert "none.json" in capsys.readouterr().out


def test_the_runner_answers_all_of_our_own_cases(capsys: pytest.CaptureFixture[str]):
    assert main([]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{len(ANSWERED)} passed, 0 failed"]
