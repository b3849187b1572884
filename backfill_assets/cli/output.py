"""How commands speak: tables for people, JSON alone on stdout for programs, errors in one line."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)


def print_json(value: Any) -> None:  # noqa: ANN401 - any JSON
    """Write a value as JSON, alone on stdout."""
    sys.stdout.write(json.dumps(value, indent=2, default=str) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, title: str = "") -> None:
    """Write rows under headings; numbers (headings that end in ``#``) are set flush right."""
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        right = column.endswith("#")
        table.add_column(
            column.rstrip("#"),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*row)
    out.print(table)


def bar(done: int, total: int, width: int = 20) -> str:
    """Draw how much of a total is done, without colour."""
    filled = width if total == 0 else done * width // total
    return "█" * filled + "░" * (width - filled)
