"""The steps: what happens to the history, one after the other, and what taking one came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.peer.subject import COLUMN, FILTER, LATER_COLUMN, NO_EDIT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.process import Measured


@dataclass(frozen=True, slots=True)
class Step:
    """What both are asked to do.

    Attributes:
        short: its name on the command line.
        title: its name in tables.
        edit: how the models are declared by then.
        restated: whether days of performance are built again.
        forward_only: whether the change counts from now on.
        goal: our time as a part of SQLMesh's; empty for none.
    """

    short: str
    title: str
    edit: str
    restated: bool = False
    forward_only: bool = False
    goal: str = ""


FIRST, NOTHING = "first", "nothing"
STEPS = (
    Step(FIRST, "first deployment", NO_EDIT, goal="≤ 0.6"),
    Step(NOTHING, "nothing to do", NO_EDIT),
    Step("additive", "additive column", COLUMN, goal="≤ 0.6"),
    Step("breaking", "breaking change", FILTER, goal="≤ 0.6"),
    Step("restate", "restate 30 days", FILTER, restated=True, goal="≤ 0.5"),
    Step("forward-only", "forward-only", LATER_COLUMN, forward_only=True, goal="≤ 0.15"),
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a model can be read after a step; without a version, at the newest one."""

    path: Path
    version: int | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """What a step took.

    Attributes:
        commands: each whole command, by its name.
        places: where each model can be read after it.
        locked: seconds per batch from asking for its table's lock to having recorded the commit.
    """

    commands: Mapping[str, Measured]
    places: Mapping[str, Place] = field(default_factory=dict[str, Place])
    locked: float | None = None

    @property
    def wall(self) -> float:
        """Seconds of all commands."""
        return sum(command.wall for command in self.commands.values())

    @property
    def cpu(self) -> float:
        """CPU seconds of all commands."""
        return sum(command.cpu for command in self.commands.values())

    @property
    def peak_mb(self) -> float:
        """The largest resident memory of any of them."""
        return max(command.peak_mb for command in self.commands.values())

    @property
    def split(self) -> str:
        """The seconds of each command, where there are several."""
        if len(self.commands) == 1:
            return ""
        return " + ".join(f"{verb} {command.wall:.1f}" for verb, command in self.commands.items())
