"""What a benchmark leaves behind: its parts as JSON, with the machine and its load beside them."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from benchmarks.part import Part, rounded

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - an entrance, as cli is one


def _load() -> float:
    return os.getloadavg()[0]


@dataclass(slots=True)
class Report:
    """The parts measured so far.

    Attributes:
        about: what was measured, such as how many events.
        began: when.
        load: of the machine, before the first part and after each.
        parts: in the order in which they were measured.
    """

    about: Mapping[str, Any]
    began: datetime = field(default_factory=_now)
    load: list[float] = field(default_factory=lambda: [_load()])
    parts: list[Part] = field(default_factory=list[Part])

    def add(self, part: Part) -> str:
        """Take a part in; give a line for who waits."""
        self.parts.append(part)
        self.load.append(_load())
        return f"measured: {part.name} (load {self.load[-1]:.1f})"

    @property
    def lines(self) -> list[str]:
        """What each part says to people."""
        return [line for part in self.parts for line in part.lines]

    @property
    def json(self) -> str:
        """All of it."""
        report = {
            "at": self.began.isoformat(timespec="seconds"),
            "machine": {
                "cores": os.cpu_count(),
                "system": platform.platform(),
                "load": self.load,
            },
            **self.about,
            **{part.name: part.figures for part in self.parts},
            "ratios": {
                name: rounded(ratio) for part in self.parts for name, ratio in part.ratios.items()
            },
            "goals": {name: goal for part in self.parts for name, goal in part.goals.items()},
        }
        return json.dumps(report, indent=2)

    def keep(self, folder: Path, name: str) -> Path:
        """Write it beside the earlier ones; give the file."""
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / f"{self.began:%Y%m%dT%H%M%S}-{name}.json"
        kept.write_text(f"{self.json}\n")
        return kept
