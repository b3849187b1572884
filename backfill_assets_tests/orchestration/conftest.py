from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from backfill_assets_tests.engine.conftest import session
from backfill_assets_tests.orchestration.shop import Shop
from backfill_assets_tests.toy import land

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["session"]


@pytest.fixture(scope="session")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy's sources, landed once; every test works on a copy."""
    root = tmp_path_factory.mktemp("toy")
    land(str(root))
    return root


@pytest.fixture
def shop(
    session: Any,  # noqa: ANN401
    landed: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Shop]:
    root = tmp_path / "data"
    shutil.copytree(landed, root)
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(root))
    with dg.DagsterInstance.ephemeral(str(tmp_path)) as instance:
        yield Shop(session, str(root), instance)
