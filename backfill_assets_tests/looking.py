"""Look at something again and again, while others work."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import ClassVar, Self


class Looking(ABC):
    """Looks before its block begins, from a thread of its own while it lasts, and after its end."""

    every: ClassVar[float]
    """Seconds between two looks."""

    def __enter__(self) -> Self:
        self.look()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.look()

    def _go_on(self) -> None:
        while not self._over.is_set():
            self.look()
            self._over.wait(self.every)

    @abstractmethod
    def look(self) -> None:
        """Look once; what goes wrong is noted, not raised."""
