"""An interval: one half-open span of time `[start, end)`, aware, in UTC."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from backfill_assets.errors import RequestError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
_ALMOST_A_SECOND = timedelta(microseconds=999_999)


def in_utc(instant: datetime) -> datetime:
    """The same instant in UTC.

    Raises:
        RequestError: it has no time zone.
    """
    if instant.tzinfo is UTC:
        return instant
    if instant.utcoffset() is None:
        raise RequestError(
            found=f"{instant.isoformat()} has no time zone; every instant here is aware",
            do="give it one, for example `.replace(tzinfo=UTC)`",
        )
    return instant.astimezone(UTC)


def epoch_of(instant: datetime) -> int:
    """Whole seconds since 1970-01-01Z, rounded down."""
    return (in_utc(instant) - EPOCH) // _SECOND


def instant_of(epoch: int) -> datetime:
    """The UTC instant that lies `epoch` seconds after 1970-01-01Z."""
    return EPOCH + timedelta(seconds=epoch)


@dataclass(frozen=True, slots=True, order=True)
class Interval:
    """A half-open span `[start, end)`, kept in UTC whatever zone it was given in.

    Ordered by start, then end.

    Raises:
        RequestError: a boundary has no time zone.
        RequestError: the end is not after the start.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", in_utc(self.start))
        object.__setattr__(self, "end", in_utc(self.end))
        if self.end <= self.start:
            raise RequestError(
                found=f"an interval is half open and never empty, but [{self.start.isoformat()}, "
                f"{self.end.isoformat()}) is",
                do="give an end after the start",
            )

    def __str__(self) -> str:
        return f"[{self.start.isoformat()}, {self.end.isoformat()})"

    @property
    def duration(self) -> timedelta:
        """How long it lasts."""
        return self.end - self.start

    def contains(self, item: Interval | datetime) -> bool:
        """Whether the instant, or the whole of the interval, lies in this one."""
        if isinstance(item, Interval):
            return self.start <= item.start and item.end <= self.end
        return self.start <= in_utc(item) < self.end


def outer_pair(span: Interval) -> tuple[tuple[int, int], ...]:
    """The whole seconds that touch a span, as one pair of epoch seconds."""
    return ((epoch_of(span.start), epoch_of(span.end + _ALMOST_A_SECOND)),)


def inner_pair(span: Interval) -> tuple[tuple[int, int], ...]:
    """The whole seconds that lie in a span, as one pair of epoch seconds."""
    return ((epoch_of(span.start + _ALMOST_A_SECOND), epoch_of(span.end)),)
