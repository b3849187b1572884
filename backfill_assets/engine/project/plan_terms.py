"""How long plans and new environments last, and what the work of a plan costs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.planning.plan.estimate import Prices

if TYPE_CHECKING:
    from backfill_assets.settings import Settings


@dataclass(frozen=True, slots=True)
class PlanTerms:
    """The settings that count for all plans.

    Attributes:
        plan_days: after how many days a plan expires.
        environment_days: how many days an unprotected environment lives after its last change.
        promise_days: how many days after its promotion a plan can be taken back.
        prices: what computing and writing cost, for estimates.
    """

    plan_days: int = 7
    environment_days: int = 30
    promise_days: int = 30
    prices: Prices = field(default_factory=Prices)


USUAL = PlanTerms()
"""The terms if nothing is set."""


def terms_of(settings: Settings) -> PlanTerms:
    """Give the terms that the settings name."""
    return PlanTerms(
        plan_days=settings.plan_days,
        environment_days=settings.environment_days,
        promise_days=settings.promise_days,
        prices=Prices(settings.price_per_hour, settings.price_per_gb, settings.currency),
    )
