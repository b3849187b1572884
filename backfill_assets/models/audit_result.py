"""The result of an audit on one batch: the number found, the number allowed, and the cells that fail."""

from __future__ import annotations

from dataclasses import dataclass

from backfill_assets.models.audit import Severity


@dataclass(frozen=True, slots=True)
class AuditResult:
    """The outcome of one audit of one batch.

    Attributes:
        audit: its name.
        severity: whether a failure keeps the batch from being committed.
        passed: whether the found value is allowed.
        found: the measured value, in words with its number.
        allowed: the values that pass, in words with their number.
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
