"""What the checks of a plan have found, and which of their findings a person has accepted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

STRATEGY = "strategy"
"""Decides on the checks that a strategy adds."""

CONSUMER = "consumer"
"""Decides on the checks that consumers have declared; all others are of the plan's contract."""


@dataclass(frozen=True, slots=True)
class PlanCheck:
    """The last result of one check of a plan.

    Attributes:
        model: of which model.
        check: its name, in words.
        passed: whether what it expects holds.
        text: what was found, in words, with the numbers.
        blocking: False for a warning.
        decided_by: of the plan's contract, ``planner`` or its author; ``strategy`` for a check that a
            strategy adds, ``consumer`` for one that a consumer has declared.
        basis: a hash of what was compared, where the text does not tell all of it.
        accepted: by whom and why, while an acceptance of just this finding holds.
    """

    model: str
    check: str
    passed: bool
    text: str
    blocking: bool = True
    decided_by: str = STRATEGY
    basis: str = ""
    accepted: str = ""

    @property
    def stops(self) -> bool:
        """Whether the promotion must not happen."""
        return self.blocking and not self.passed and not self.accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """A person's word that what a check has found is known and right; it is about these numbers alone.

    Attributes:
        plan_id: of which plan.
        model: of which model.
        check: the name of the check.
        text: what the check had found.
        basis: a hash of what was compared, where the text does not tell all of it.
        reason: why it is right.
        who: accepted it.
        at: when (UTC).
    """

    plan_id: str
    model: str
    check: str
    text: str
    basis: str
    reason: str
    who: str
    at: datetime

    @property
    def words(self) -> str:
        """Say who has accepted it, and why."""
        return f"accepted by {self.who}: {self.reason}"

    def holds(self, check: PlanCheck) -> bool:
        """Whether a check has found just what was accepted."""
        same = (self.model, self.check) == (check.model, check.check)
        return same and (self.text, self.basis) == (check.text, check.basis)
