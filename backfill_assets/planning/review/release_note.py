"""Release notes: what a publication changes for readers, why, and how to go back, in plain words.

One note tells of a whole plan, or of what concerns one consumer.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.intervals.text import first_of
from backfill_assets.planning.review.straddling import Straddling

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KNOWN = "Known differences"
"""The title of the section that names what differs, or keeps an old definition, and was published all the same."""

_SHOWN = 6


class Cause(StrEnum):
    """What it means for answers that were given before."""

    ADDED = "added"
    """Columns or a model that were not there: all else is as it was."""
    REDEFINED = "redefined"
    """The numbers have another meaning."""
    CORRECTED = "corrected"
    """The numbers have the same meaning, and were wrong or incomplete."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelNote:
    """What a reader of one model has to know.

    Attributes:
        model: its name.
        because: why its numbers differ, in words.
        cause: what that means for answers that were given before.
        published: the cells that were published anew, in words; empty for none.
        differ: those of them whose content differs, in words; empty for none.
        gone: the cells that readers have lost, in words; empty for none.
        columns: that differ; empty where they are not known, or all do.
        rows_differ: whether rows came or went.
        boundary: comparisons over time that have new cells on one side and old ones on the other.
    """

    model: str
    because: str
    cause: Cause
    published: str = ""
    differ: str = ""
    gone: str = ""
    columns: tuple[str, ...] = ()
    rows_differ: bool = False
    boundary: Straddling = field(default_factory=Straddling)


@dataclass(frozen=True, slots=True)
class ConsumerNote:
    """What concerns one consumer in one model.

    Attributes:
        consumer: its name.
        owner: who answers for it.
        model: what it reads.
        columns: those of its columns that differ; empty for all that it reads.
        cells: which of the cells that it reads, in words.
    """

    consumer: str
    owner: str
    model: str
    columns: tuple[str, ...]
    cells: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseNote:
    """A release note, before it is written.

    Attributes:
        plan_id: the plan.
        environment: where it was published, or would be.
        reason: why it was asked for, in words.
        asked_by: by whom.
        ended: how the plan ended, in a word or two.
        active: since when readers read it, and who published it; empty while nothing is published.
        over: since when they read it no more; empty while they do.
        models: what changed, model by model.
        removed: models that the environment runs no more.
        left_alone: readers of changed models that see no difference, each with the reason.
        consumers: whom it concerns.
        tests: what was tested, and with which outcome, in words, each after the model that it is about; none for
            what is about the whole plan.
        known: differences that are known and were accepted, in words, each after its model.
        back: the commands that take it back; none where nothing can be.
        until: until when they can be given; empty for no limit.
    """

    plan_id: str
    environment: str
    reason: str
    asked_by: str
    ended: str
    active: str = ""
    over: str = ""
    models: tuple[ModelNote, ...] = ()
    removed: tuple[str, ...] = ()
    left_alone: tuple[tuple[str, str], ...] = ()
    consumers: tuple[ConsumerNote, ...] = ()
    tests: tuple[tuple[str, str], ...] = ()
    known: tuple[tuple[str, str], ...] = ()
    back: tuple[str, ...] = ()
    until: str = ""


def for_consumer(note: ReleaseNote, consumer: str) -> ReleaseNote:
    """Keep what concerns one consumer: the models that it reads, on the columns and dates that it reads.

    Raises:
        RequestError: it is not concerned.
    """
    own = tuple(reader for reader in note.consumers if reader.consumer == consumer)
    if not own:
        names = ", ".join(sorted({reader.consumer for reader in note.consumers})) or "none"
        raise RequestError(
            found=f"plan {note.plan_id} changes nothing that consumer '{consumer}' is declared to read",
            expected=f"one that it concerns: {names}",
        )
    read = {reader.model: reader for reader in own}
    models = tuple(
        replace(
            model,
            columns=read[model.model].columns or model.columns,
            differ=read[model.model].cells,
            rows_differ=model.rows_differ or bool(model.gone),
        )
        for model in note.models
        if model.model in read
    )
    tests, known = (
        tuple((model, text) for model, text in texts if not model or model in read)
        for texts in (note.tests, note.known)
    )
    return replace(
        note, models=models, consumers=own, tests=tests, known=known, left_alone=(), removed=()
    )


def note_text(note: ReleaseNote) -> str:
    """Write a release note as Markdown."""
    lines = [
        f"# What changed in {note.environment}: plan {note.plan_id}",
        "",
        *_opening(note),
        *_section("What changed, and why", _changed(note)),
        *_section("Comparisons over time", _comparisons(note)),
        *_section(KNOWN, (f"- {text}" for _, text in note.known)),
        *_section("What to refresh", _refresh(note)),
        *_section("What was tested", (f"- {text}" for _, text in note.tests)),
        *_section("How to go back", _back(note)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _opening(note: ReleaseNote) -> Iterator[str]:
    asker = f" Asked for by {note.asked_by}." if note.asked_by else ""
    reason = f" Reason: {note.reason}." if note.reason else ""
    if not note.active:
        yield f"Nothing of this plan is published: it is {note.ended}.{reason}{asker}"
    elif note.over:
        yield f"Active from {note.active} until {note.over}: readers read the data from before it again.{reason}{asker}"
    else:
        yield f"Active since {note.active}.{reason}{asker}"


def _section(title: str, lines: Iterable[str]) -> list[str]:
    listed = [*lines]
    return ["", f"## {title}", "", *listed] if listed else []


def _changed(note: ReleaseNote) -> Iterator[str]:
    for model in note.models:
        yield f"- **{model.model}**: {model.because}."
        if model.differ:
            yield f"  - different: {model.differ}, {_columns_text(model)}"
        if model.published and model.published != model.differ:
            yield f"  - built and published again: {model.published}"
        if model.published and not model.differ:
            yield "  - no cell differs"
        if model.gone:
            yield f"  - no longer published: {model.gone}"
    for name in note.removed:
        yield f"- **{name}**: removed; it is no longer available to readers."
    for name, because in note.left_alone:
        yield f"- {name} is unchanged: {because}."


def _columns_text(model: ModelNote) -> str:
    if model.rows_differ:
        return "in which rows there are" + (
            f" and in {first_of(model.columns, _SHOWN)}" if model.columns else ""
        )
    return f"in {first_of(model.columns, _SHOWN)}" if model.columns else "in any column"


def _comparisons(note: ReleaseNote) -> Iterator[str]:
    for model in note.models:
        if not model.differ:
            continue
        if note.over:
            yield f"- {model.model}: {_taken_back(note)}"
            continue
        if not model.boundary:
            yield f"- {model.model}: none straddles a boundary of the changed range."
        else:
            yield f"- {model.model}: these compare changed cells with unchanged ones."
            yield from (f"  - {text}" for text in _straddling_texts(model.boundary))
        yield f"  - {_reinterpreted(note, model)}"


def _straddling_texts(boundary: Straddling) -> Iterator[str]:
    if boundary.months:
        yield f"month over month: {_pairs(boundary.months)}"
    if boundary.years:
        yield f"year over year: {_pairs(boundary.years)}"
    if boundary.mixed:
        yield f"changed and unchanged days within one month: {first_of(boundary.mixed, _SHOWN)}"


def _taken_back(note: ReleaseNote) -> str:
    """Say which answers rest on what readers read no more."""
    since, until = (text.partition(",")[0] for text in (note.active, note.over))
    return (
        f"Answers given from {since} until {until} rest on what was taken back then: ask again. "
        "Others stay valid."
    )


def _reinterpreted(note: ReleaseNote, model: ModelNote) -> str:
    """Say whether answers that were given before must be read anew, and why."""
    if not note.active:
        return "Answers given so far stay valid: nothing is published."
    since = note.active.partition(",")[0]
    if model.cause is Cause.ADDED:
        later = " The new columns are empty in the older cells." if model.boundary else ""
        return f"Older data is unchanged: answers given so far stay valid.{later}"
    if model.cause is Cause.CORRECTED:
        return (
            f"Answers that used these cells before {since} rest on numbers that were wrong or "
            "incomplete: ask again. Both sides of a comparison are right now."
        )
    if model.boundary:
        return (
            "The two sides follow different definitions: a difference between them may be the "
            "definition's alone. Answers given before must be read so, or asked again for one definition."
        )
    return f"Answers given before {since} follow the old definition: read them so, or ask again."


def _refresh(note: ReleaseNote) -> Iterator[str]:
    for reader in note.consumers:
        what = first_of(reader.columns, _SHOWN) if reader.columns else "all that it reads"
        yield f"- {reader.consumer} ({reader.owner}): {what} of {reader.model}, {reader.cells}"
    changed = [model.model for model in note.models if model.differ or model.gone]
    if changed:
        yield f"- whatever keeps a copy, an extract or a cache of {first_of(changed, _SHOWN)} for these dates"


def _back(note: ReleaseNote) -> Iterator[str]:
    if not note.back:
        return
    until = f" Until {note.until}." if note.until else ""
    yield f"Either of these brings back what was read before.{until}"
    yield ""
    yield from (f"    {command}" for command in note.back)


def _pairs(pairs: tuple[tuple[str, str], ...]) -> str:
    return first_of([f"{late} with {early}" for late, early in pairs], _SHOWN)
