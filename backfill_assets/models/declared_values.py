"""Refuse what an author wrote where a declaration needs a value of another type, or each name once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, cast

from backfill_assets.errors import DeclarationError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import StrEnum
    from types import UnionType
    from typing import TypeAlias

    Types: TypeAlias = type | UnionType
    """What `isinstance` takes."""


FLAG = (bool, "True or False")
"""What `require_values` needs of a field that is one of two."""


def require_values(of: str, written: object, needed: Mapping[str, tuple[Types, str]]) -> None:
    """Refuse a field of a declaration whose value has another type.

    Args:
        of: whose declaration, for the error: ``model 'a.b'``.
        written: the declaration.
        needed: by field, the types that it may have, and those in words.

    Raises:
        DeclarationError: one has none of its types.
    """
    for name, (types, expected) in needed.items():
        value = getattr(written, name)
        if not isinstance(value, types):
            raise _of_another_type(of, _shown(value), name, expected)


def require_distinct(of: str, what: str, names: Iterable[str], expected: str) -> None:
    """Refuse names of which one is given more than once.

    Args:
        of: whose declaration, for the error.
        what: bears the names, in words.
        names: as they count: where case does not, in small letters.
        expected: in words.

    Raises:
        DeclarationError: one is.
    """
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DeclarationError(
            found=f"{of}: found {what} named {', '.join(twice)} more than once", expected=expected
        )


def settle_lists(of: str, written: object, needed: Mapping[str, tuple[Types, str]]) -> None:
    """Keep each field of a declaration that lists values as a tuple.

    Args:
        of: whose declaration, for the error.
        written: the declaration; it may be frozen.
        needed: by field, the types of its values, and those in words.

    Raises:
        DeclarationError: one is no list, or a value has none of the types.
    """
    for name, (types, expected) in needed.items():
        values = listed(of, name, getattr(written, name), types, expected)
        object.__setattr__(written, name, values)


def settle_words(of: str, written: object, needed: Mapping[str, type[StrEnum]]) -> None:
    """Keep each field of a declaration that holds one word of a few as the member of its enum.

    Args:
        of: whose declaration, for the error.
        written: the declaration; it may be frozen.
        needed: by field, the words.

    Raises:
        DeclarationError: one is none of the words.
    """
    for name, words in needed.items():
        word = getattr(written, name)
        try:
            object.__setattr__(written, name, words(word))
        except ValueError as error:
            raise _of_another_type(of, _shown(word), name, one_word_of(words)) from error


def one_word_of(words: type[StrEnum]) -> str:
    """Name the words that a field may hold."""
    return f"one of {', '.join(repr(known.value) for known in words)}"


def listed(of: str, name: str, values: object, types: Types, expected: str) -> tuple[Any, ...]:
    """Give the values of one such field.

    Raises:
        DeclarationError: they are no list, or one has none of the types.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise _of_another_type(
            of, f"the single value {_shown(values)}", name, f"a list of {expected}"
        )
    kept = tuple(cast("Iterable[object]", values))
    for value in kept:
        if not isinstance(value, types):
            raise _of_another_type(of, _shown(value), f"one of {name}", expected)
    return kept


def _shown(value: object) -> str:
    """Write a value as its author did; a whole declaration in the wrong place by its beginning."""
    return f"{value!r:.60}"


def _of_another_type(of: str, found: str, name: str, expected: str) -> DeclarationError:
    return DeclarationError(found=f"{of}: found {found} as {name}", expected=expected)
