"""Categories that a person decided, held against what really differs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError
from backfill_assets.planning.request import Category

if TYPE_CHECKING:
    from backfill_assets.models.model import Model
    from backfill_assets.planning.categorize import Difference
    from backfill_assets.planning.request import PlanRequest


class CategoryContradictsError(BackfillAssetsError):
    """A person's category can't be true of the change."""

    def __init__(self, model: str, asked: Category, found: str) -> None:
        self.model, self.asked = model, asked
        super().__init__(
            f"'{model}' was declared {asked.value}, but {found}; leave the category to the "
            "planner, or choose one that the change allows"
        )


@dataclass(frozen=True, slots=True)
class Decided:
    """What a person decided about one model."""

    category: Category
    why: str
    by: str


def decided(
    request: PlanRequest,
    new: Model,
    old: Model,
    direct: Difference | None,
    *,
    reads_changed: bool,
) -> Decided | None:
    """Give the category that a person chose for a model, if one did and it can be true.

    Args:
        request: what was asked, and by whom.
        new: the loaded declaration.
        old: the one that the environment runs.
        direct: how they differ; None where nothing was edited.
        reads_changed: whether it reads something that the plan changes.

    Raises:
        CategoryContradictsError: it can't be true.
    """
    by = request.asked_by or "the person who asked"
    computes = direct is not None and direct.category is not Category.METADATA
    asked = dict(request.categories).get(new.name)
    if asked is None:
        if not request.forward_only or not (computes or reads_changed):
            return None
        asked, why = Category.FORWARD_ONLY, "forward-only was asked for"
    else:
        why = f"decided by {by}; the planner found: {_found(direct)}"
    _check(new.name, asked, _contradiction(asked, old, new, direct, reads_changed=reads_changed))
    if asked is Category.METADATA and not computes:
        return None
    return Decided(asked, why, by)


def _check(model: str, asked: Category, contradiction: str | None) -> None:
    if contradiction is not None:
        raise CategoryContradictsError(model, asked, contradiction)


def _found(direct: Difference | None) -> str:
    return "nothing edited" if direct is None else f"{direct.category.value} ({direct.why})"


def _contradiction(
    asked: Category, old: Model, new: Model, direct: Difference | None, *, reads_changed: bool
) -> str | None:
    """Say why the category can't be true; None if it can."""
    computes = direct is not None and direct.category is not Category.METADATA
    if not computes and not reads_changed and asked is not Category.METADATA:
        return "neither its logic nor anything that it reads changes"
    if asked is Category.METADATA and reads_changed:
        return "it reads what changes"
    if asked is Category.METADATA and direct is not None and computes and not direct.unproved:
        return direct.why
    moved = [what for what, before, after in _identity(old, new) if before != after]
    if moved and asked in (Category.NON_BREAKING, Category.FORWARD_ONLY):
        return f"its {' and '.join(moved)} changed, which is breaking"
    return None


def _identity(old: Model, new: Model) -> tuple[tuple[str, object, object], ...]:
    """What decides which row is which, and where it lies."""
    return (
        ("unique key", old.key, new.key),
        ("grain", old.grain, new.grain),
        ("kind", old.kind, new.kind),
        ("cadence", old.cadence.unit, new.cadence.unit),
        ("time zone", old.cadence.tz, new.cadence.tz),
        ("delete policy", old.delete_policy, new.delete_policy),
    )
