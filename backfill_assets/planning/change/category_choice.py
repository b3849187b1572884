"""Categories that a person or a declaration decided, checked against the actual difference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.planning.plan.request import Category

if TYPE_CHECKING:
    from backfill_assets.models.model import Model
    from backfill_assets.planning.change.categorize import DeclarationDifference
    from backfill_assets.planning.plan.request import PlanRequest


DECLARATION = "the model's declaration"
"""Who decides where a model is declared `forward_only`."""

_STALE = "what it reads changes, so that published cells may become stale at the promotion"


@dataclass(frozen=True, slots=True)
class CategoryChoice:
    """The decision of a person, or of the declaration, about one model."""

    category: Category
    why: str
    by: str


def chosen_category(
    request: PlanRequest,
    new: Model,
    old: Model,
    direct: DeclarationDifference | None,
    *,
    reads_changed: bool,
) -> CategoryChoice | None:
    """Give the category that was decided for a model; None where none was decided.

    A person's word on the model counts first, then forward-only for the whole plan, then the loaded
    declaration's: an edit that also switches `forward_only` is planned as it is declared now.

    Args:
        request: what was asked, and by whom.
        new: the loaded declaration.
        old: the one that the environment runs.
        direct: how they differ; None where nothing was edited.
        reads_changed: whether it reads something that the plan changes.

    Raises:
        RequestError: the difference contradicts the decided category.
    """
    computes = direct is not None and direct.category is not Category.METADATA
    choice = _choice(request, new, direct, computes=computes, reads_changed=reads_changed)
    if choice is None:
        return None
    contradiction = _contradiction(choice.category, old, new, direct, reads_changed=reads_changed)
    if contradiction is not None:
        raise RequestError(
            found=f"'{new.name}' was declared {choice.category.value}, but {contradiction}",
            do=f"plan it with --category {new.name}=breaking"
            if choice.by == DECLARATION
            else "leave the category to the planner, or choose one that the change allows",
        )
    if choice.category is Category.METADATA and not computes:
        return None
    return choice


def _choice(
    request: PlanRequest,
    new: Model,
    direct: DeclarationDifference | None,
    *,
    computes: bool,
    reads_changed: bool,
) -> CategoryChoice | None:
    """Find the decision: of the request on this model, of the request on all, of the declaration; else None."""
    by = request.asked_by or "the person who asked"
    category = dict(request.categories).get(new.name)
    if category is not None:
        return CategoryChoice(category, f"decided by {by}; the planner found: {_found(direct)}", by)
    if not (computes or reads_changed):
        return None
    if request.forward_only:
        return CategoryChoice(Category.FORWARD_ONLY, "forward-only was asked for", by)
    if new.forward_only:
        findings = [_found(direct)] * computes + [_STALE] * reads_changed
        why = f"it declares forward_only; the planner found: {'; '.join(findings)}"
        return CategoryChoice(Category.FORWARD_ONLY, why, DECLARATION)
    return None


def _found(direct: DeclarationDifference | None) -> str:
    return "nothing edited" if direct is None else f"{direct.category.value} ({direct.why})"


def _contradiction(
    category: Category,
    old: Model,
    new: Model,
    direct: DeclarationDifference | None,
    *,
    reads_changed: bool,
) -> str | None:
    """Say why the category can't be true; None if it can."""
    computes = direct is not None and direct.category is not Category.METADATA
    if not computes and not reads_changed and category is not Category.METADATA:
        return "neither its logic nor anything that it reads changes"
    if category is Category.METADATA and reads_changed:
        return "it reads what changes"
    if category is Category.METADATA and direct is not None and computes and not direct.unproved:
        return direct.why
    moved = [what for what, before, after in _identity(old, new) if before != after]
    if moved and category in (Category.NON_BREAKING, Category.FORWARD_ONLY):
        return f"its {' and '.join(moved)} changed, which is breaking"
    return None


def _identity(old: Model, new: Model) -> tuple[tuple[str, object, object], ...]:
    """The declarations that identify a row, and decide in which cell it lies."""
    return (
        ("unique key", old.key, new.key),
        ("grain", old.grain, new.grain),
        ("kind", old.kind, new.kind),
        ("cadence", old.cadence.unit, new.cadence.unit),
        ("time zone", old.cadence.tz, new.cadence.tz),
        ("delete policy", old.delete_policy, new.delete_policy),
    )
