"""The declaration of a consumer: which published models and columns it reads, and how far back."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.models.model_rules import OWNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class ConsumerKind(StrEnum):
    """The sort of a consumer."""

    DASHBOARD = "dashboard"
    NOTEBOOK = "notebook"
    APPLICATION = "application"
    MODEL = "model"
    AGENT = "agent"


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
        object.__setattr__(self, "columns", tuple(self.columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A person or system outside of the project that reads published models.

    Attributes:
        name: what people call it.
        kind: what sort of reader it is: a `ConsumerKind`, or its word.
        owner: who answers for it: ``team:name`` or an e-mail address.
        reads: the models that it reads.
        description: in words.
    """

    name: str
    kind: ConsumerKind | str
    owner: str
    reads: Sequence[Reading]
    description: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reads", tuple(self.reads))
        for found, expected in _wrong(self):
            raise DeclarationError(
                found=f"consumer '{self.name}': found {found}", expected=expected
            )
        object.__setattr__(self, "kind", ConsumerKind(self.kind))


CONSUMED = (Consumer, Reading, ConsumerKind)
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
