"""Sessions by walking through each user's views one by one: slow, and plainly right."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

DAY = timedelta(days=1)
SILENCE = timedelta(minutes=30)


@dataclass
class Session:
    """One user's session while it is being walked through."""

    user_id: str
    chain_start: datetime
    started_at: datetime
    ended_at: datetime
    page_views: int = 1

    @property
    def limit(self) -> datetime:
        """The first midnight after the last view that cuts: at least the second of the chain."""
        return max(midnight(self.ended_at) + DAY, midnight(self.chain_start) + 2 * DAY)

    @property
    def closed_at(self) -> datetime:
        return min(self.ended_at + SILENCE, self.limit)

    @property
    def day(self) -> datetime:
        """The day that the close lies in; midnight itself ends a day."""
        return midnight(self.closed_at - timedelta(microseconds=1))


def midnight(instant: datetime) -> datetime:
    return instant.replace(hour=0, minute=0, second=0, microsecond=0)


def sessions_of(user_id: str, views: list[datetime]) -> list[Session]:
    """Find all sessions of a user's views."""
    found: list[Session] = []
    for at in sorted(views):
        last = found[-1] if found else None
        if last is None or at >= last.ended_at + SILENCE:
            found.append(Session(user_id, at, at, at))
        elif at >= last.limit:
            found.append(Session(user_id, last.chain_start, at, at))
        else:
            last.ended_at, last.page_views = at, last.page_views + 1
    return found
