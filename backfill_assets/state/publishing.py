"""Publish: every pointer of a promotion, rollback or undo moves in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from datetime import datetime

    from backfill_assets.snapshots.publication import Publication


class PointerMovedError(BackfillAssetsError):
    """Pointers are not where the plan saw them."""

    def __init__(self, plan_id: str, environment: str, models: tuple[str, ...]) -> None:
        self.plan_id, self.environment, self.models = plan_id, environment, models
        super().__init__(
            f"environment '{environment}' reads {', '.join(models)} elsewhere than plan {plan_id} saw "
            "it; expected nobody to have moved it since. Nothing was published; plan again"
        )


def publish(connection: object, publication: Publication, locks: object, now: datetime) -> int:
    raise NotImplementedError
