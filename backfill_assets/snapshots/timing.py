"""The measured duration of a whole operation, step by step; later estimates use it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

RUN, APPLY, PROMOTE = "run", "apply", "promote"
"""The operations of which this is kept."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The duration of an operation.

    Attributes:
        verb: ``run``, ``apply`` or ``promote``.
        steps: seconds by step, as people read its name.
        plan_id: the plan; empty for none.
        cells: that the plan names, of all models.
        by_rows: whether rows are compared, or files copied; otherwise pointers alone are moved.
        at: when it ended (UTC), as the state has kept it; None before that.
    """

    verb: str
    steps: Mapping[str, float]
    plan_id: str = ""
    cells: int = 0
    by_rows: bool = False
    at: datetime | None = None
