"""Read what a person expects of a plan: rules on the line, or files of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from backfill_assets.errors import RequestError
from backfill_assets.planning.review.contract_text import expectations_of_toml, written_expectations

if TYPE_CHECKING:
    from collections.abc import Iterable


def expected(asked: Iterable[str] | None) -> tuple[tuple[str, str], ...]:
    """Give (model, rule) of every line and file, in their order.

    Raises:
        RequestError: a file can't be read, or a rule is none.
    """
    return tuple(pair for text in asked or () for pair in _read(text))


def _read(text: str) -> tuple[tuple[str, str], ...]:
    if not text.endswith(".toml"):
        return written_expectations([text])
    try:
        return expectations_of_toml(Path(text).read_text(encoding="utf-8"), text)
    except (OSError, UnicodeDecodeError) as error:
        found = getattr(error, "strerror", None) or "it is no text"
        raise RequestError(
            found=f"--expect {text}: {found}", do="give a file of rules, or MODEL: RULE; RULE"
        ) from error
