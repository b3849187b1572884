"""The pages of the examples, and what of an output is the same in every run."""

from __future__ import annotations

import re
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_VARIES = re.compile(
    r"\bp?[0-9a-f]{8,}\b|\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?|^(Estimate|took|Expires) .*|\d+ s\b"
    r"|\S+ \(typed: ada\)|(?<=^Evidence: )\S+",
    re.MULTILINE,
)


def folder_of(name: str) -> Path:
    """The folder of an example: of `s06`, `s06_doubled_quantities`."""
    (folder,) = EXAMPLES.glob(f"{name}_*")
    return folder


def page_of(name: str) -> str:
    """The output that the page of an example shows."""
    text = (folder_of(name) / "README.md").read_text(encoding="utf-8")
    return text.partition("```text\n")[2].partition("\n```")[0] + "\n"


def steady(output: str) -> list[str]:
    """The lines of an output without ids, users, instants, durations and estimates."""
    return [
        re.sub(r" +", " ", _VARIES.sub("_", line)).rstrip() for line in output.strip().splitlines()
    ]
