"""Ready records: which cells of a version hold audited data, and their content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from backfill_assets.models.codec import ADDED_LATER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.content import ChangedAt, Content


@dataclass(frozen=True, slots=True)
class InputPin:
    """The part of one upstream that a batch read: at exactly this `delta_version`.

    Attributes:
        upstream: model or source.
        version: the upstream's version; empty for a source.
        path: the place of the Delta table (see `snapshots.places`).
        delta_version: Delta's own number; -1 for a table that has no commit yet.
        cells: the upstream's cells that were read here, where one table lies over another: then there
            is a pin per table that some cells are read from. None: every cell that the batch reads.
        table_id: of a source: Delta's own id of the table that was read; empty where its first
            commit is gone and it was never looked at, and in pins of earlier releases.
    """

    upstream: str
    version: str
    path: str
    delta_version: int
    cells: IntervalSet | None = None
    table_id: str = field(default="", metadata=ADDED_LATER)


def pins_by_upstream(pins: Iterable[InputPin]) -> dict[str, tuple[InputPin, ...]]:
    """Give pins by what was read, in the order in which they were read."""
    by_upstream: dict[str, tuple[InputPin, ...]] = {}
    for pin in pins:
        by_upstream[pin.upstream] = (*by_upstream.get(pin.upstream, ()), pin)
    return by_upstream


@dataclass(frozen=True, slots=True)
class ReadyRecord:
    """One cell of one version that holds audited data.

    It is valid from the `delta_version` that introduced it until the one that replaced it.

    Attributes:
        version: the physical table's id.
        cell: the interval.
        valid_from: delta_version that introduced it.
        valid_to: delta_version that replaced it; None while it is current.
        built_at: counter value taken in the transaction that resolved the batch's inputs.
        fingerprint: the snapshot that built it.
        batch_id: the batch that built it.
        content: the content of the cell.
        changed_at: counter values of the last real changes.
    """

    version: str
    cell: Interval
    valid_from: int
    valid_to: int | None
    built_at: int
    fingerprint: str
    batch_id: str
    content: Content
    changed_at: ChangedAt

    def is_valid_at(self, delta_version: int) -> bool:
        """Whether readers of its table at this delta_version read it."""
        ended = self.valid_to is not None and self.valid_to <= delta_version
        return self.valid_from <= delta_version and not ended
