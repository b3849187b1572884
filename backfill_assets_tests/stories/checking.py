"""Compare what is published with what it must be, and say where it differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.stories.published import in_order, rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from backfill_assets_tests.stories.oracle import Row
    from backfill_assets_tests.stories.project import Project


def assert_published(project: Project, expected: Mapping[str, list[Row]]) -> None:
    """Hold what prod publishes to what the landed events say."""
    for model, should in expected.items():
        assert_same(rows(project, model), should, model)


def assert_same(found: Iterable[Row], expected: Iterable[Row], what: str) -> None:
    """Hold rows to what they must be, in any order; a failure shows the first that differ."""
    found, expected = in_order(found), in_order(expected)
    if found == expected:
        return
    pairs = ((row, other) for row, other in zip(found, expected, strict=False) if row != other)
    first, other = next(pairs, (None, None))
    pytest.fail(
        f"{what}: {len(found)} rows instead of {len(expected)}; the first that differs is\n"
        f"  {first}\ninstead of\n  {other}"
    )
