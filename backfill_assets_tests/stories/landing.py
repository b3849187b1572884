"""What the ad platform does to its table later on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deltalake import DeltaTable

from backfill_assets_tests.stories.project import EVENTS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    from backfill_assets_tests.stories.project import Project


def raise_cost(project: Project, days: Iterable[date]) -> None:
    """Correct the clicks of some days: each cost a dollar more."""
    _events(project).update(
        updates={"cost": "CAST(cost + 1 AS DECIMAL(18, 4))"},
        predicate=f"event_type = 'click' AND {_on(days)}",
    )


def delete_day(project: Project, day: date) -> None:
    """Delete everything that was reported of a day."""
    _events(project).delete(_on([day]))


def _events(project: Project) -> DeltaTable:
    return DeltaTable(str(project.data / EVENTS))


def _on(days: Iterable[date]) -> str:
    listed = ", ".join(f"CAST('{day}' AS DATE)" for day in days)
    return f"event_date IN ({listed})"
