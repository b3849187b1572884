"""What an audit found in one batch: the number, what is allowed, and where."""

from __future__ import annotations

from dataclasses import dataclass

from backfill_assets.models.audit import Severity


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The outcome of one audit of one batch.

    Attributes:
        audit: its name.
        severity: whether a failure keeps the batch from being committed.
        passed: whether what was found is allowed.
        found: what was measured, in words with its number.
        allowed: what would have passed, in words with its number.
        failing_rows: how many rows fail, where rows can fail.
        cells: keys of the cells that fail, at most 20.
        sample: failing rows as JSON objects, at most 10.
    """

    audit: str
    severity: Severity
    passed: bool
    found: str
    allowed: str
    failing_rows: int = 0
    cells: tuple[str, ...] = ()
    sample: tuple[str, ...] = ()

    @property
    def blocks(self) -> bool:
        """Whether this result keeps the batch from being committed."""
        return not self.passed and self.severity is Severity.BLOCKING
