"""What came of rebuilding a published cell from its recorded code and pins."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from backfill_assets.intervals.interval import Interval
    from backfill_assets.models.content import Content


class Verdict(StrEnum):
    """How a rebuilt cell compares with the published one."""

    EQUAL = "equal"
    DIFFERS = "differs"
    IMPOSSIBLE = "can't be replayed"


@dataclass(frozen=True, slots=True)
class Replayed:
    """One cell, rebuilt and compared.

    Attributes:
        model: whose cell.
        cell: which.
        verdict: equal, or not, or that it can't be rebuilt.
        causes: why it differs or can't be rebuilt, in words.
        columns: whose checksums differ.
        rows: how many were published, and rebuilt; None where it was not rebuilt.
        batch_id: the batch that built it; empty where that is not known.
        fingerprint: the snapshot that built it; likewise.
        pins: what it read, as ``name@delta_version``.
    """

    model: str
    cell: Interval
    verdict: Verdict
    causes: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[int, int] | None = None
    batch_id: str = ""
    fingerprint: str = ""
    pins: tuple[str, ...] = ()


def differing_columns(published: Content, rebuilt: Content) -> tuple[str, ...]:
    """Name the columns whose checksums differ; where keys or rows differ, every column's may."""
    names = dict.fromkeys((*published.columns, *rebuilt.columns))
    return tuple(name for name in names if published.columns.get(name) != rebuilt.columns.get(name))
