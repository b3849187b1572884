"""The last scan of each model, with the pins at which it had nothing to release.

A scan of a model reads its ready records. While nothing that decides about it has moved, the answer is
the same, so it is remembered by a hash of all that decides. A memory that is lost costs one more scan.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_LENGTH = 12
DONE, LEFT, OUTSIDE, FAILED = "done", "left", "outside", "failed"
"""What a scan of a model may end with: nothing is left; something waits; something lies where no run can be
requested; something failed and won't come again."""


class Scanned(NamedTuple):
    """The last scan of a model.

    Attributes:
        key: at what it had nothing to release; empty where it had.
        end: what was left all the same.
        stale: the name of what is stale; empty for nothing.
    """

    key: str
    end: str
    stale: str


@dataclass(frozen=True, slots=True)
class ScanMemory:
    """The memory of earlier scans.

    Attributes:
        models: the last scan of each, per environment and model.
        next: where the next scan begins, by environment: no model is asked more often than others.
    """

    models: Mapping[str, Scanned] = field(default_factory=dict[str, Scanned])
    next: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def read(cls, text: str | None) -> ScanMemory:
        """Read a memory back; one that can't be read is empty."""
        try:
            stored: Any = json.loads(text or "{}")
            models = {name: Scanned(*last) for name, last in stored["models"].items()}
            return cls(models, dict(stored["next"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            return cls()

    def text(self) -> str:
        """Write the memory as text."""
        return json.dumps({"models": dict(self.models), "next": dict(self.next)}, sort_keys=True)

    def knows(self, name: str, key: str) -> bool:
        """Whether nothing that decides has moved since the last scan."""
        return name in self.models and self.models[name].key == key

    def is_done(self, name: str) -> bool:
        """Whether nothing at all was left at the last scan."""
        return name in self.models and self.models[name].end == DONE

    def ended(self, end: str) -> list[str]:
        """Name where the last scan ended so."""
        return [name for name, last in self.models.items() if last.end == end]

    def stale(self) -> dict[str, str]:
        """What was stale at the last scan, as a hash, by model."""
        return {name: last.stale for name, last in self.models.items() if last.stale}


def hashed(value: object) -> str:
    """Name plain values by a short hash."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_LENGTH]
