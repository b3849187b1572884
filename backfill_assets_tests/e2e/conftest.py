from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from backfill_assets_tests.e2e.server import Project, new_project, serving
from backfill_assets_tests.toy import land

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets_tests.e2e.graphql import Client


@pytest.fixture(scope="session")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy's sources, landed once; every project works on a copy."""
    root = tmp_path_factory.mktemp("toy")
    land(str(root))
    return root


@pytest.fixture
def project(landed: Path, tmp_path: Path) -> Project:
    """A project that has filled nothing yet."""
    return new_project(tmp_path, landed)


@pytest.fixture(scope="module")
def served_project(landed: Path, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One project for all stories, each of which has models of its own."""
    return new_project(tmp_path_factory.mktemp("served"), landed)


@pytest.fixture(scope="module")
def client(served_project: Project) -> Iterator[Client]:
    """Webserver and daemon over that project."""
    with serving(served_project) as started:
        yield started
