"""Accept what a check of a plan has found: a known difference, as long as the numbers stay the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from backfill_assets.snapshots.plan_check import Acceptance, PlanCheck


def with_acceptances(
    checks: Iterable[PlanCheck], acceptances: Sequence[Acceptance]
) -> tuple[PlanCheck, ...]:
    """Mark the failed checks whose finding is accepted."""
    return tuple(_with_acceptance(check, acceptances) for check in checks)


def _with_acceptance(check: PlanCheck, acceptances: Sequence[Acceptance]) -> PlanCheck:
    holding = valid_acceptances((check,), acceptances)
    return replace(check, accepted=holding[0].words) if holding else check


def valid_acceptances(
    checks: Iterable[PlanCheck], acceptances: Sequence[Acceptance]
) -> tuple[Acceptance, ...]:
    """Give the acceptances that hold for what the checks have found; an acceptance of other numbers is void."""
    failed = [check for check in checks if not check.passed]
    holding = (
        next((accepted for accepted in reversed(acceptances) if accepted.holds(check)), None)
        for check in failed
    )
    return tuple(accepted for accepted in holding if accepted is not None)


def voided(check: PlanCheck, acceptances: Sequence[Acceptance]) -> str:
    """Say that an acceptance does not hold any more, since the numbers are others; empty if none did."""
    if check.passed or check.accepted:
        return ""
    for accepted in reversed(acceptances):
        if (accepted.model, accepted.check) == (check.model, check.check):
            was = "in other cells" if accepted.text == check.text else accepted.text
            return f"no longer {accepted.words} (then: {was})"
    return ""


def check_named(checks: Sequence[PlanCheck], model: str, name: str) -> PlanCheck:
    """Find the check of a model by its name, or by a part of it that only one has.

    Raises:
        RequestError: the model has no such check, or several, or it has passed.
    """
    own = [check for check in checks if check.model == model]
    text = name.strip().lower()
    exact = [check for check in own if check.check.lower() == text]
    matches = exact or [check for check in own if text in check.check.lower()]
    listed = ", ".join(f"'{check.check}'" for check in (matches or own))
    if not own:
        models = ", ".join(dict.fromkeys(check.model for check in checks)) or "none"
        raise RequestError(
            found=f"no check of '{model}' has run for this plan", do=f"models with checks: {models}"
        )
    if not matches or not text:
        raise RequestError(found=f"{model} has no check '{name}'", do=f"its checks are {listed}")
    if len(matches) > 1:
        raise RequestError(
            found=f"'{name}' fits several checks of {model}", expected=f"one of {listed}"
        )
    if matches[0].passed:
        raise RequestError(
            found=f"{model}: {matches[0].check}: {matches[0].text}; the check has passed, so there is "
            "nothing to accept"
        )
    return matches[0]
