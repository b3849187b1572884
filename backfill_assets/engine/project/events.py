"""What a run tells while it works: one value per thing that happened to cells of a model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, TypeVar, assert_never

from backfill_assets.intervals.text import counted, ranges_text
from backfill_assets.snapshots.failure import FailureKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from backfill_assets.intervals.interval import Interval
    from backfill_assets.intervals.interval_set import IntervalSet
    from backfill_assets.models.audit_result import AuditResult
    from backfill_assets.models.content import Content
    from backfill_assets.models.graph import Graph


@dataclass(frozen=True, slots=True)
class BatchSeconds:
    """Seconds that a batch spent, by step."""

    compute: float = 0.0
    audit: float = 0.0
    commit: float = 0.0
    state: float = 0.0

    @property
    def total(self) -> float:
        """Seconds altogether."""
        return self.compute + self.audit + self.commit + self.state


@dataclass(frozen=True, slots=True)
class SourceNote:
    """Something about a source that a model reads; it keeps no batch from going on.

    Attributes:
        note: what was found there, in words.
    """

    model: str
    note: str


@dataclass(frozen=True, slots=True)
class Started:
    """A batch began."""

    model: str
    batch_id: str
    cells: IntervalSet


@dataclass(frozen=True, slots=True)
class Delayed:
    """A batch waits for its turn and holds nothing meanwhile; it starts by itself.

    Attributes:
        why: what it waits for, in words.
    """

    model: str
    cells: IntervalSet
    why: str


@dataclass(frozen=True, slots=True)
class Committed:
    """A batch is committed and recorded: its cells are ready.

    Attributes:
        contents: what each of its cells holds now, cells that rows moved out of included.
    """

    model: str
    batch_id: str
    cells: IntervalSet
    delta_version: int
    contents: Mapping[Interval, Content]
    audits: tuple[AuditResult, ...]
    rows: int
    timing: BatchSeconds

    @property
    def filled(self) -> int:
        """How many cells it has filled; those that rows moved out of are other batches'."""
        return sum(cell in self.cells for cell in self.contents)


@dataclass(frozen=True, slots=True)
class Failed:
    """A batch committed nothing, and is not tried again in this run.

    Attributes:
        error: one sentence: what, where, found, allowed.
        audits: the results, where it came so far.
        kind: whether the same batch may succeed later.
    """

    model: str
    batch_id: str
    cells: IntervalSet
    error: str
    audits: tuple[AuditResult, ...] = ()
    kind: FailureKind = FailureKind.CODE


@dataclass(frozen=True, slots=True)
class TryingAgain:
    """A batch committed nothing for a reason that may pass, and is tried again in this run.

    Attributes:
        attempt: the number of the attempt to come.
        limit: how many there may be.
        seconds: until it begins.
        error: what failed the attempt before.
    """

    model: str
    cells: IntervalSet
    attempt: int
    limit: int
    seconds: float
    error: str

    @property
    def words(self) -> str:
        """Describe the event in one sentence."""
        return (
            f"attempt {self.attempt} of {self.limit} in {self.seconds:.0f} s, because {self.error}"
        )


@dataclass(frozen=True, slots=True)
class Skipped:
    """Cells are ready already; each with the batch that built it."""

    model: str
    built_by: Mapping[Interval, str]


@dataclass(frozen=True, slots=True)
class Waiting:
    """Cells can't be filled yet.

    Attributes:
        waits_for: what has to come first, in words: missing cells of a model, a source that they read, `OWN_CELLS`, a
            plan, or the environment that writes the table.
    """

    model: str
    cells: IntervalSet
    waits_for: str


@dataclass(frozen=True, slots=True)
class LeftStale:
    """Published cells that an upstream's change has overtaken, and that the run leaves as they are.

    Attributes:
        until: what builds them again, or what they wait for, in words; empty where that takes a plan of a
            person.
    """

    model: str
    cells: IntervalSet
    upstream: str
    until: str = ""

    @property
    def words(self) -> str:
        """Describe the event in one sentence."""
        until = self.until or "published history changes by a plan only"
        return f"{self.upstream} changed since; {until}"


OWN_CELLS = "its own earlier cells"
"""What cells wait for whose model reads its own cells."""

Event = (
    SourceNote
    | Started
    | Delayed
    | TryingAgain
    | Committed
    | Failed
    | Skipped
    | Waiting
    | LeftStale
)
if TYPE_CHECKING:
    Listener = Callable[[Event], None]


def seconds_by_step(events: Iterable[Event]) -> dict[str, float]:
    """Sum the steps of the committed batches, those side by side as well."""
    done = [event.timing for event in events if isinstance(event, Committed)]
    return {
        step.name: round(sum(getattr(timing, step.name) for timing in done), 3)
        for step in fields(BatchSeconds)
    }


_Kind = TypeVar("_Kind")


def events_of(kind: type[_Kind], by_model: Mapping[str, Iterable[Event]]) -> tuple[_Kind, ...]:
    """Give the events of one kind, of all models."""
    return tuple(
        event for events in by_model.values() for event in events if isinstance(event, kind)
    )


def event_line(graph: Graph, event: Event) -> str | None:
    """Describe an event in one line; None for an event that is not shown."""
    if isinstance(event, Started | Skipped):
        return None
    if isinstance(event, SourceNote):
        return event.note
    word, cells, text = _told(event)
    model = graph.models.get(event.model)  # its declaration may be gone already
    named = ranges_text(model.cadence, cells) if model else str(cells)
    return f"{word:<8}{event.model} {named}: {text}"


def _told(
    event: Delayed | TryingAgain | Committed | Failed | Waiting | LeftStale,
) -> tuple[str, IntervalSet, str]:
    """Give the word for an event, its cells, and the end of the line."""
    match event:
        case Delayed():
            words = "waits", f"for {event.why}"
        case TryingAgain():
            words = "again", event.words
        case Committed():
            passed = sum(result.passed for result in event.audits)
            audits = f"audits {passed}/{len(event.audits)}"
            words = "done", f"{counted(event.rows, 'row')}, {audits}, {event.timing.total:.1f} s"
        case Failed():
            words = "FAILED", event.error
        case Waiting():
            words = "waits", f"for {event.waits_for}"
        case LeftStale():
            words = "late" if event.until else "stale", event.words
        case _:
            assert_never(event)
    return words[0], event.cells, words[1]
