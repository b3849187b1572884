"""The models that were scanned and had nothing to release, by the pins at which that was so.

A scan of a model reads its ready records. While nothing that decides about it has moved, the answer is
the same, so it is remembered by a hash of all that decides. A memory that is lost costs one more scan.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_LENGTH = 12
DONE, LEFT, FAILED = "done", "left", "failed"
"""What a scan of a model may end with: nothing is left; something waits; something failed and won't come again."""


@dataclass(frozen=True, slots=True)
class ScanMemory:
    """The memory of earlier scans.

    Attributes:
        keys: per environment and model, at what it had nothing to release; with what was left all
            the same, and with the name of what is stale.
        next: where the next scan begins, by environment: no model is asked more often than others.
    """

    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    next: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def read(cls, text: str | None) -> ScanMemory:
        """Read a memory back; one that can't be read is empty."""
        try:
            stored: Any = json.loads(text or "{}")
            keys, after = dict(stored["keys"]), dict(stored["next"])
        except (ValueError, KeyError, TypeError):
            return cls()
        return cls(keys, after)

    def text(self) -> str:
        """Write the memory as text."""
        return json.dumps({"keys": dict(self.keys), "next": dict(self.next)}, sort_keys=True)

    def knows(self, name: str, key: str) -> bool:
        """Whether nothing that decides has moved since the last scan."""
        return self._parts(name)[0] == key

    def is_done(self, name: str) -> bool:
        """Whether nothing at all was left at the last scan."""
        return self._parts(name)[1] == DONE

    def failed(self) -> list[str]:
        """Name where something failed and is not asked for again."""
        return [name for name in self.keys if self._parts(name)[1] == FAILED]

    def stale(self) -> dict[str, str]:
        """What was stale at the last scan, as a hash, by model."""
        return {name: hashed for name in self.keys if (hashed := self._parts(name)[2])}

    def _parts(self, name: str) -> tuple[str, str, str]:
        key, _, more = self.keys.get(name, "").partition(" ")
        end, _, stale = more.partition(" ")
        return key, end, stale


def marked(key: str, *, end: str, stale: str) -> str:
    """Note what a scan ended with, and the name of what is stale."""
    return f"{key} {end} {stale}"


def hashed(value: object) -> str:
    """Name plain values by a short hash."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_LENGTH]
