"""Wait for something that other processes do, with a deadline that only a failure reaches."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class DeadlineError(AssertionError):
    """What was waited for did not happen."""


def until(found: Callable[[], T | None], *, seconds: float, what: str, every: float = 0.5) -> T:
    """Ask again and again until there is an answer that is not empty.

    Raises:
        DeadlineError: there was none in time.
    """
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if answer := found():
            return answer
        time.sleep(every)
    raise DeadlineError(f"after {seconds:.0f} s still not: {what}")
