"""Code is frozen while a plan is applied: every batch looks whether it still is what was planned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.planning.rule.late_work import ASKED_BY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from backfill_assets.planning.plan.plan import Plan

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class FrozenCode:
    """The declarations that a plan was made for.

    Attributes:
        plan_id: the plan.
        planned: per model of it, the fingerprint of its declaration when it was made.
        now: gives the fingerprints of the declarations as they are at this moment.
    """

    plan_id: str
    planned: Mapping[str, str]
    now: Callable[[], Mapping[str, str]]

    @classmethod
    def of(cls, plan: Plan, now: Callable[[], Mapping[str, str]]) -> FrozenCode:
        """Take what a plan was made for.

        Late data's own plan is made for the snapshots that its environment runs, so edits before it is applied do
        not count; a model that is declared no more does.
        """
        planned = {
            model_plan.model: model_plan.loaded for model_plan in plan.models if model_plan.loaded
        }
        if plan.request.asked_by == ASKED_BY:
            loaded = now()
            planned = {name: loaded.get(name, at) for name, at in planned.items()}
        return cls(plan.plan_id, planned, now)

    def check(self) -> None:
        """Refuse to go on once any model of the plan is another one.

        Raises:
            RequestError: some are; it names them.
        """
        current = self.now()
        changes = [
            f"'{name}' was {planned[:_SHOWN]} and is {current[name][:_SHOWN] if name in current else 'gone'}"
            for name, planned in self.planned.items()
            if current.get(name) != planned
        ]
        if changes:
            raise RequestError(
                found=f"the code has changed since plan {self.plan_id} was made: {'; '.join(changes)}",
                do="Cells already built are kept; no further cells are built. Restore the code and apply again, "
                "or make a new plan, which shows the difference",
            )
