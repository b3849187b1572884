"""Holds: a consumer goes on reading what was published at one moment, whatever is promoted meanwhile."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

_PREFIX = "held_"
_OTHER = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class Hold:
    """A consumer that is held: an environment of its own with frozen pointers.

    Attributes:
        environment: the frozen one, by which it can be read: ``held_yearly_accounts``.
        consumer: as it is declared.
        of: the environment whose publication it keeps.
        models: those that it keeps.
        held_at: since when.
        until: when a person meant to release it; it goes on until a person does. None: not said.
        who: the person who holds it.
        reason: why.
    """

    environment: str
    consumer: str
    of: str
    models: tuple[str, ...]
    held_at: datetime
    until: datetime | None
    who: str
    reason: str

    def is_overdue(self, now: datetime) -> bool:
        """Whether it should have been released by now."""
        return self.until is not None and self.until <= now


def held_name(consumer: str) -> str:
    """Name the environment of a held consumer: what is no letter or digit becomes an underscore."""
    return _PREFIX + _OTHER.sub("_", consumer.lower()).strip("_")
