"""A part of the benchmark: what it measured, how that compares, and what the goals were."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
        """Each ratio with its goal beside it."""
        return tuple(
            f"{name}: {value:.2f}" + (f" (goal {self.goals[name]})" if name in self.goals else "")
            for name, value in self.ratios.items()
        )


def rounded(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Round every figure to a hundredth."""
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return round(value, 2) if isinstance(value, float) else value
