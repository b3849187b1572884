"""Do something again and again beside the work, from a thread of its own."""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_log = logging.getLogger(__name__)


@contextmanager
def meanwhile(act: Callable[[], object], *, every: float, name: str) -> Iterator[None]:
    """Act until the block ends.

    Args:
        act: what to do. Where it fails, that is logged, and the next time may succeed.
        every: seconds between two times, and before the first.
        name: of the thread, and of what is done in the log.
    """
    ended = threading.Event()

    def go_on() -> None:
        while not ended.wait(every):
            try:
                act()
            except Exception as error:  # noqa: BLE001 - it must not end the thread
                _log.warning("%s failed, and is tried again: %s", name, error)

    thread = threading.Thread(target=go_on, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
