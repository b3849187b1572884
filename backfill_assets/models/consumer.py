"""The declaration of a consumer: which published models and columns it reads, and how far back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.models.codec import ADDED_LATER
from backfill_assets.models.declared_values import settle_lists
from backfill_assets.models.model_rules import OWNER
from backfill_assets.models.sql.query import SqlQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class ConsumerKind(StrEnum):
    """The sort of a consumer."""

    DASHBOARD = "dashboard"
    NOTEBOOK = "notebook"
    APPLICATION = "application"
    MODEL = "model"
    AGENT = "agent"
    EXPORT = "export"
    REVERSE_ETL = "reverse ETL"


class OnChange(StrEnum):
    """What a consumer asks for before what it reads is published otherwise.

    Each asks for what the one before it does, too: a notice, then an acknowledgement.
    """

    NONE = "none"
    NOTIFY = "notify"
    ACK = "ack"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a consumer reads of one model.

    Attributes:
        model: its name.
        columns: those that it reads; empty for all.
        days_back: how many days before now, or before the end of a history that has ended; None for
            all of history.
    """

    model: str
    columns: Sequence[str] = ()
    days_back: int | None = None

    def __post_init__(self) -> None:
        settle_lists(f"the reading of '{self.model}'", self, {"columns": (str, "names of columns")})


@dataclass(frozen=True, slots=True)
class CheckQuery:
    """A query of a consumer over published models; the rows that it gives must not be.

    Attributes:
        name: what it checks, in a few words.
        sql: Spark SQL over the models that the consumer reads, by their names, without parameters.
    """

    name: str
    sql: str

    @property
    def query(self) -> SqlQuery:
        """The query, with the tables that it reads.

        Raises:
            DeclarationError: it is no query.
        """
        return SqlQuery(self.sql)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A command of a consumer that measures what it reads: how well a model or an agent does with it.

    It is run twice before a plan is published: on what is published, and on what would be. Its
    last argument, added to those below, is a folder with a Parquet file ``MODEL.parquet`` for each model that the
    consumer reads, with the columns and days that it declares. The last line that the command prints is a JSON object of numbers.

    Attributes:
        name: what it measures, in a few words.
        command: the program and its arguments.
        within: the fraction of the number before by which each number may differ.
        minutes: how long one run of it may take.
    """

    name: str
    command: Sequence[str]
    within: float = 0.0
    minutes: float = 10.0

    def __post_init__(self) -> None:
        settle_lists(
            f"evaluation '{self.name}'", self, {"command": (str, "a program and its arguments")}
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A person or system outside of the project that reads published models.

    Attributes:
        name: what people call it.
        kind: what sort of reader it is: a `ConsumerKind`, or its word.
        owner: who answers for it: ``team:name`` or an e-mail address.
        reads: the models that it reads.
        description: in words.
        on_change: what it asks for before a plan that changes what it reads is promoted: an `OnChange`, or
            its word.
        notice_days: how many days before such a promotion it wants to know, unless it acknowledges earlier.
        channels: where its notices go, by the names in the file of channels.
        checks: queries that must give no row of what a plan would publish for it.
        evaluations: commands that measure what it reads, before and after a plan.
        reviewed: the local date (YYYY-MM-DD) on which a person last confirmed this declaration.
    """

    name: str
    kind: ConsumerKind | str
    owner: str
    reads: Sequence[Reading]
    description: str = ""
    on_change: OnChange | str = field(default=OnChange.NONE, metadata=ADDED_LATER)
    notice_days: int = field(default=0, metadata=ADDED_LATER)
    channels: Sequence[str] = field(default=(), metadata=ADDED_LATER)
    checks: Sequence[CheckQuery] = field(default=(), metadata=ADDED_LATER)
    evaluations: Sequence[Evaluation] = field(default=(), metadata=ADDED_LATER)
    reviewed: str = field(default="", metadata=ADDED_LATER)

    def __post_init__(self) -> None:
        settle_lists(f"consumer '{self.name}'", self, _LISTS)
        for problem, expected in _wrong(self):
            raise DeclarationError(
                found=f"consumer '{self.name}': found {problem}", expected=expected
            )
        object.__setattr__(self, "kind", ConsumerKind(self.kind))
        object.__setattr__(self, "on_change", OnChange(self.on_change))


_LISTS = {
    "reads": (Reading, "Reading(model, ...)"),
    "channels": (str, "names of channels"),
    "checks": (CheckQuery, "CheckQuery(name, sql)"),
    "evaluations": (Evaluation, "Evaluation(name, command)"),
}

CONSUMED = (Consumer, Reading, CheckQuery, Evaluation, ConsumerKind, OnChange)
"""What stored consumers are made of."""


def _wrong(consumer: Consumer) -> Iterator[tuple[str, str]]:
    """Pairs of the value found and the value expected."""
    kinds = [kind.value for kind in ConsumerKind]
    if not consumer.name.strip():
        yield "no name", "what people call it"
    if consumer.kind not in kinds:
        yield f"kind '{consumer.kind}'", f"one of {', '.join(kinds)}"
    if not OWNER.fullmatch(consumer.owner):
        yield f"owner '{consumer.owner}'", "'team:name' or an e-mail address"
    if not consumer.reads:
        yield "nothing that it reads", "at least one Reading(model, ...)"
    yield from _wrong_readings(consumer)
    yield from _wrong_wishes(consumer)
    yield from _wrong_checks(consumer)
    yield from _wrong_evaluations(consumer)


def _wrong_readings(consumer: Consumer) -> Iterator[tuple[str, str]]:
    for name, count in Counter(read.model for read in consumer.reads).items():
        if count > 1:
            yield f"'{name}' more than once", "one Reading per model"
    for reading in consumer.reads:
        if reading.days_back is not None and reading.days_back < 1:
            yield (
                f"days_back={reading.days_back} of '{reading.model}'",
                "at least 1, or None for all",
            )


def _wrong_wishes(consumer: Consumer) -> Iterator[tuple[str, str]]:
    wishes = [wish.value for wish in OnChange]
    if consumer.on_change not in wishes:
        yield f"on_change='{consumer.on_change}'", f"one of {', '.join(wishes)}"
    elif consumer.notice_days < 0:
        yield f"notice_days={consumer.notice_days}", "0 or more"
    elif consumer.on_change == OnChange.NONE.value and (consumer.notice_days or consumer.channels):
        yield (
            "notice_days or channels with on_change='none'",
            "on_change='notify' or 'ack' beside them",
        )
    elif consumer.on_change == OnChange.NOTIFY.value and not consumer.channels:
        yield "on_change='notify' without channels", "the name of at least one channel"
    if consumer.reviewed and not _is_date(consumer.reviewed):
        yield f"reviewed='{consumer.reviewed}'", "a date such as 2026-01-31"


def _wrong_checks(consumer: Consumer) -> Iterator[tuple[str, str]]:
    read = {reading.model for reading in consumer.reads}
    for name, count in Counter(check.name for check in consumer.checks).items():
        if count > 1 or not name.strip():
            yield f"{count} checks named '{name}'", "a name of its own for each"
    for check in consumer.checks:
        strange = check.query.tables() - read
        if strange or not check.query.tables():
            table = f"'{min(strange)}'" if strange else "no model"
            yield f"that check '{check.name}' reads {table}", f"one of {', '.join(sorted(read))}"
        if check.query.parameters():
            yield f"that check '{check.name}' has parameters", "a query over all cells"


def _wrong_evaluations(consumer: Consumer) -> Iterator[tuple[str, str]]:
    names = [each.name for each in (*consumer.checks, *consumer.evaluations)]
    for evaluation in consumer.evaluations:
        named = f"evaluation '{evaluation.name}'"
        if not evaluation.name.strip() or names.count(evaluation.name) > 1:
            yield f"{named}, which is no name or another one's", "a name of its own"
        if not evaluation.command:
            yield f"{named} without a command", "the program and its arguments"
        if evaluation.within < 0 or evaluation.minutes <= 0:
            yield (
                f"{named} within {evaluation.within:g}, {evaluation.minutes:g} minutes",
                "0 or more, and more than 0",
            )


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
