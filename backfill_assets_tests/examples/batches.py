"""What `backfill batches --json` says of a model's committed batches."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from backfill_assets.intervals.interval import Interval

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.testing import TemporaryProject


def batches_of(project: TemporaryProject, model: str, status: str = "committed") -> list[Any]:
    """List the batches of a model that ended in one way, the oldest first."""
    listed = project.do("batches", "--model", model, "--limit", "1000", "--json").json
    return sorted(
        (batch for batch in listed if batch["status"] == status),
        key=lambda batch: batch["started_at"],
    )


def span(batch: Any) -> Interval:  # noqa: ANN401 - JSON
    """From the first to the end of the last cell of a batch."""
    return Interval(datetime.fromisoformat(batch["start"]), datetime.fromisoformat(batch["end"]))


def days_in(batches: Iterable[Any]) -> list[int]:
    """How many days each batch spans."""
    return [span(batch).duration.days for batch in batches]


def most_at_once(batches: Iterable[Any]) -> int:
    """How many batches were at work at the same moment, at most."""
    moments = sorted(
        moment
        for batch in batches
        for moment in ((batch["started_at"], 1), (batch["finished_at"], -1))
    )
    at_work = most = 0
    for _, change in moments:
        at_work += change
        most = max(most, at_work)
    return most
