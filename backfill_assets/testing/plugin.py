"""Fixtures of pytest: `pytest_plugins = ["backfill_assets.testing.plugin"]` in a `conftest.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets.testing.project import temporary_project
from backfill_assets.testing.spark import shared_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from backfill_assets.testing.project import TemporaryProject


@pytest.fixture(scope="session")
def backfill_spark() -> Iterator[None]:
    """Let all commands of the test run share one Spark, which starts when the first needs it."""
    with shared_spark():
        yield


@pytest.fixture
def backfill_project(
    backfill_spark: None, tmp_path: Path
) -> Callable[..., AbstractContextManager[TemporaryProject]]:
    """Make projects, in the folder of the test and with one Spark for all; see `temporary_project`."""
    del backfill_spark

    def made(
        *packages: Path, catalog: str, **given: str
    ) -> AbstractContextManager[TemporaryProject]:
        return temporary_project(*packages, catalog=catalog, folder=tmp_path / "project", **given)

    return made
