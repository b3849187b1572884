"""How often a batch is tried, how long apart, and how long it may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backfill_assets.settings import Settings


@dataclass(frozen=True, slots=True)
class Patience:
    """What a run bears with.

    Attributes:
        attempts: how often a batch is tried, the first time included.
        pause: seconds before the second attempt; then twice as many, and so on, each up to one
            `pause` longer, by chance, so that those who failed together don't come back together.
        longest: seconds between two attempts, at most.
        timeout: seconds that a batch may take until its commit turn, where its model does not say;
            None for any time.
    """

    attempts: int = 3
    pause: float = 2.0
    longest: float = 120.0
    timeout: float | None = None


PATIENT = Patience()
"""What a run bears with that nobody has told otherwise."""


def patience_of(settings: Settings) -> Patience:
    """Be as patient as the settings say."""
    return Patience(attempts=settings.attempts, timeout=settings.batch_timeout)
