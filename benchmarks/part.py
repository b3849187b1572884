"""A part of the benchmark: what it measured, how that compares, and what the goals were."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from benchmarks.goals import verdict

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Part:
    """What one benchmark came to.

    Attributes:
        name: under which the figures are kept.
        figures: what was measured, as JSON.
        lines: the same for people.
        ratios: what is compared with a goal, or with what was measured elsewhere.
        goals: by the name of a ratio, what it should be.
    """

    name: str
    figures: Any
    lines: tuple[str, ...]
    ratios: Mapping[str, float] = field(default_factory=dict[str, float])
    goals: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def compared(self) -> tuple[str, ...]:
        """Each ratio with its goal beside it, and whether it is met."""
        return tuple(
            f"{name}: {value:.2f}" + (f" (goal {goal}: {verdict(value, goal)})" if goal else "")
            for name, value, goal in self.beside_goals
        )

    @property
    def beside_goals(self) -> tuple[tuple[str, float, str], ...]:
        """Each ratio's name and value, and its goal; an empty one where none is set."""
        return tuple((name, value, self.goals.get(name, "")) for name, value in self.ratios.items())


def rounded(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Round every figure to a hundredth."""
    if isinstance(value, dict):
        return {key: rounded(figure) for key, figure in value.items()}
    return round(value, 2) if isinstance(value, float) else value
