"""The output of commands: tables for people, JSON alone on stdout for programs, errors in one line."""

from __future__ import annotations

import json
import sys
import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console

from backfill_assets.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)
_GAP = "  "
_BAR = 10
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
_IN_LINES = {code: sign for code, sign in _CONTROLS.items() if chr(code) not in "\t\n"}
_MOST_INDENT = 4
"""The part of a terminal that is left empty before broken lines, at the most: a quarter."""


@dataclass(frozen=True, slots=True)
class Heading:
    """One column of a table.

    Attributes:
        name: its title.
        number: whether it is aligned right.
        spare: whether it may be left out where the terminal is too narrow; the largest goes first.
    """

    name: str
    number: bool = False
    spare: int = 0


@contextmanager
def writing(
    file: Path, do: str = "name a file in a folder that you may write to"
) -> Iterator[None]:
    """Tell of a file that can't be written, and what to do about it.

    Raises:
        RequestError: it can't.
    """
    try:
        yield
    except OSError as error:
        raise RequestError(
            found=f"{file} can't be written: {error.strerror or error}", do=do
        ) from error


def print_json(value: Any) -> None:  # noqa: ANN401 - any JSON
    """Write a value as JSON, alone on stdout; an instant as ISO 8601 has it."""
    sys.stdout.write(json.dumps(value, indent=2, default=_plain) + "\n")


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def say(text: str, *, to: Console | None = None, style: str | None = None, indent: int = 0) -> None:
    """Write one line: whole in a pipe, broken between words on a terminal.

    Control characters, as a value of a row may have them, are written by their code: a terminal obeys none.

    Args:
        text: the line.
        to: the console; stdout by default.
        style: a style of rich's, left out where there is no colour.
        indent: how far the lines after a break are indented, by a quarter of the terminal at the most.
    """
    console, text = to or out, text.translate(_IN_LINES)
    lines = [text]
    if console.is_terminal:
        lines = textwrap.wrap(
            text,
            console.width,
            subsequent_indent=" " * min(indent, console.width // _MOST_INDENT),
            break_long_words=False,
            break_on_hyphens=False,
        )
    for line in lines or [""]:
        console.print(line, style=style, markup=False, soft_wrap=True)


def print_table(headings: Sequence[Heading], rows: Iterable[Sequence[str]]) -> None:
    """Write rows under headings, never folded: spare columns are left out of a narrow terminal.

    Control characters are written as `say` writes them, line breaks too.
    """
    listed = [tuple(text.translate(_CONTROLS) for text in row) for row in rows]
    widths = [
        max(len(heading.name), *(len(row[at]) for row in listed), 0)
        for at, heading in enumerate(headings)
    ]
    shown = _fitting(headings, widths, room=out.width if out.is_terminal else None)
    for row in (tuple(heading.name for heading in headings), *listed):
        cells = (_set(row[at], widths[at], number=headings[at].number) for at in shown)
        out.print(_GAP.join(cells).rstrip(), markup=False, soft_wrap=True)


def _fitting(headings: Sequence[Heading], widths: Sequence[int], room: int | None) -> list[int]:
    shown = list(range(len(headings)))
    while room is not None and sum(widths[at] + len(_GAP) for at in shown) - len(_GAP) > room:
        widest = max(shown, key=lambda at: headings[at].spare)
        if not headings[widest].spare:
            break
        shown.remove(widest)
    return shown


def _set(text: str, width: int, *, number: bool) -> str:
    return text.rjust(width) if number else text.ljust(width)


def bar(done: int, total: int) -> str:
    """Draw how much of a total is done, without colour; full only when all of it is."""
    filled = _BAR if done >= total else done * _BAR // total
    full, empty = _drawable("█░", "#.")
    return full * filled + empty * (_BAR - filled)


def _drawable(signs: str, plain: str) -> str:
    try:
        signs.encode(out.encoding)
    except (UnicodeEncodeError, LookupError):
        return plain
    return signs
