"""The person who asks: the name that the system knows, kept apart from a typed name."""

from __future__ import annotations

from dataclasses import dataclass

AUTOMATION = "dagster"
"""The name of what runs by itself: sensors and schedules."""

_UNKNOWN = "unknown, through "


@dataclass(frozen=True, slots=True)
class Person:
    """The person who asks; its text is stored in the history.

    Attributes:
        name: as the system knows it, such as the user of the operating system; or in words, why it
            is not known.
        identity: the name that permissions rest on; None where the system knows none.
        typed: a name that was typed or set: a claim, which is recorded and never believed.
    """

    name: str
    identity: str | None = None
    typed: str = ""

    def __str__(self) -> str:
        """Give the text that the history keeps."""
        claimed = self.typed.strip()
        return f"{self.name} (typed: {claimed})" if claimed not in ("", self.name) else self.name


def verified_person(name: str, typed: str = "") -> Person:
    """Give a person whom the system knows."""
    return Person(name, identity=name, typed=typed)


def unverified_person(through: str, typed: str = "") -> Person:
    """Give a person whom the system does not know, who came through a part of it."""
    return Person(f"{_UNKNOWN}{through}", typed=typed)


def names_in(text: str) -> frozenset[str]:
    """Give every name that a person may have, of the text that the history keeps; none: not known.

    A typed name is among them: what is claimed counts where it takes a right away.
    """
    name, _, claimed = text.partition(" (typed: ")
    if not name or name == AUTOMATION or name.startswith(_UNKNOWN):
        return frozenset()
    return frozenset(filter(None, (name, claimed.removesuffix(")"))))
