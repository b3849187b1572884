"""Check names of models and sources: ``subject.table``, usable as keys, tables and folders."""

from __future__ import annotations

import re

from backfill_assets.errors import DeclarationError

_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")


def check_name(name: object) -> None:
    """Refuse a name that is not ``subject.table``.

    Raises:
        DeclarationError: it has other characters, or not two parts.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DeclarationError(
            found=f"'{name}' is not a usable name",
            expected="two lower-case parts such as 'marketing.campaign_performance'",
        )
