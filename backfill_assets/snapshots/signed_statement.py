"""A signed statement as the state keeps it: the text, its signature, and whom the signature proves."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class SignedStatement:
    """What a principal has signed about a plan; never changed, never removed.

    Attributes:
        plan_id: the plan.
        act: what was signed for: ``approve``, ``promote``, ...
        principal: who signed, as it was verified then; what relies on it verifies it again.
        text: what was signed.
        signature: of that text, as `ssh-keygen -Y sign` makes it.
        at: when (UTC).
        expires: from when it does not count any more (UTC).
    """

    plan_id: str
    act: str
    principal: str
    text: str
    signature: str
    at: datetime
    expires: datetime

    @property
    def sha256(self) -> str:
        """The SHA-256 of its text: it names the statement."""
        return hashlib.sha256(self.text.encode()).hexdigest()
