"""Write what the checks of a plan have found, and which findings are accepted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.planning.review.acceptance import voided

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backfill_assets.snapshots.plan_check import Acceptance, PlanCheck


def check_text(check: PlanCheck, accepted: Sequence[Acceptance] = ()) -> str:
    """Write one result: whether it holds, what was expected, what was found, and who decided."""
    void = voided(check, accepted)
    ended = check.accepted or void
    return (
        f"{check_sign(check)} {check.check}: {check.text}"
        f"{f'; {ended}' if ended else ''} ({check.decided_by})"
    )


def check_sign(check: PlanCheck) -> str:
    """Give the sign of a result: passed, accepted, or not."""
    if check.passed:
        return "\u2713"
    return "\u2248" if check.accepted else "\u2717"


def checks_markdown(checks: Sequence[PlanCheck], accepted: Sequence[Acceptance]) -> str:
    """Write the results of a plan's checks under a title; empty before they ran."""
    return "".join(f"{line}\n" for line in _lines(checks, accepted)) if checks else ""


def _lines(checks: Sequence[PlanCheck], accepted: Sequence[Acceptance]) -> Iterator[str]:
    yield from ("", "### Checks", "")
    for check in checks:
        yield f"- `{check.model}`: {check_text(check, accepted)}"
