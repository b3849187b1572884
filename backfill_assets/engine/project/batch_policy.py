"""How often a batch is tried, how long a run waits in between, how long a batch may take, and which hours are off-peak."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.intervals.zones import UnknownZoneError
from backfill_assets.planning.queue.off_peak import InvalidOffPeakError, OffPeak, read_off_peak

if TYPE_CHECKING:
    from backfill_assets.settings import Settings


@dataclass(frozen=True, slots=True)
class BatchPolicy:
    """How often a run tries a batch, how long it waits, and how long a batch may take.

    Attributes:
        attempts: how often a batch is tried, the first time included.
        pause: seconds before the second attempt, doubled before each further one. Each wait is up to one `pause`
            longer at random, so that batches that failed together are not tried again together.
        longest: seconds between two attempts, at most.
        timeout: seconds that a batch may take until its commit turn, where its model does not say;
            None for any time.
        off_peak: the hours in which models' off-peak Spark settings count; None for none.
    """

    attempts: int = 3
    pause: float = 2.0
    longest: float = 120.0
    timeout: float | None = None
    off_peak: OffPeak | None = None


USUAL_POLICY = BatchPolicy()
"""The policy of a run where nothing is set."""


def batch_policy_of(settings: Settings) -> BatchPolicy:
    """Read from the settings how often and how long a batch is tried.

    Raises:
        DeclarationError: the off-peak hours can't be read.
    """
    return BatchPolicy(
        attempts=settings.attempts,
        timeout=settings.batch_timeout,
        off_peak=off_peak_of(settings),
    )


def off_peak_of(settings: Settings) -> OffPeak | None:
    """Read the off-peak hours that the settings name.

    Raises:
        DeclarationError: they can't be read.
    """
    if not settings.off_peak:
        return None
    try:
        return read_off_peak(settings.off_peak)
    except (InvalidOffPeakError, UnknownZoneError) as error:
        raise DeclarationError(
            found=f"BACKFILL_OFF_PEAK is {settings.off_peak!r}: {error}",
            do="correct it in the environment, or in the file .env",
        ) from error
