"""Loading cases, and judging our answers by theirs, or by our own where we differ on purpose."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from backfill_assets_tests.vectors.answers import answer

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE = Path(__file__).parent
CASES = HERE / "cases"
DIFFERENCES = HERE / "differences.json"

SUPPORTED = (
    "merge_intervals",
    "remove_intervals",
    "missing_intervals",
    "cron",
    "partials",
    "batching",
    "lookback",
    "end_bounded",
    "restatement",
    "categorization",
    "ours",
)
"""The files that this stage answers; the others wait for the stage that builds what they ask."""


@dataclass(frozen=True)
class Failure:
    """A case whose answer is not the expected one."""

    case_id: str
    name: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        expected, found = json.dumps(self.expected), json.dumps(self.found)
        return f"FAILED {self.case_id} ({self.name}): expected {expected}, found {found}"


def default_files() -> list[Path]:
    """Our own copies of the files that this stage answers."""
    return [CASES / f"{name}.json" for name in SUPPORTED]


def files_of(paths: Iterable[Path]) -> list[Path]:
    """The files, and every JSON file of the folders."""
    return [
        file
        for path in paths
        for file in (sorted(path.glob("*.json")) if path.is_dir() else [path])
    ]


def cases_of(file: Path) -> list[dict[str, Any]]:
    """The cases of one file; a JSON file that holds none, such as the differences, has none."""
    content = json.loads(file.read_text(encoding="utf-8"))
    cases = content.get("cases", []) if isinstance(content, dict) else content
    return [case for case in cases if "call" in case]


@cache
def differences() -> dict[str, dict[str, Any]]:
    """Our own answers, by the id of the case."""
    return {each["id"]: each for each in json.loads(DIFFERENCES.read_text(encoding="utf-8"))}


def judge(case: dict[str, Any]) -> Failure | None:
    """None if our answer is right.

    Raises:
        NotSupportedYet: The product can't be asked this yet.
    """
    ours = differences().get(case["id"])
    expected = case["expected"] if ours is None else ours["expected"]
    found = answer(case)
    if found == expected or (ours is None and _both_refuse(expected, found)):
        return None
    return Failure(case["id"], case.get("name", ""), expected, found)


def _both_refuse(expected: object, found: object) -> bool:
    """The cases name the peer's exception class, which can't be ours."""
    return all(isinstance(each, dict) and "error" in each for each in (expected, found))
