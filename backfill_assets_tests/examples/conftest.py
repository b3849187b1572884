"""The worked examples: each is told in a folder of its own, with the Spark of the tests."""

from __future__ import annotations

import importlib.util
import sys
from typing import TYPE_CHECKING

import pytest

from backfill_assets.testing import TemporaryProject, shared_spark, temporary_project
from backfill_assets_tests.examples.pages import folder_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def one_spark(spark: SparkSession) -> Iterator[None]:
    """Every command takes the session of the tests, and leaves it running."""
    with shared_spark(spark):
        yield


@pytest.fixture
def script(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script of the example that the test module is named after: `test_s06` runs `s06_...`."""
    name = request.path.stem.removeprefix("test_")
    path = folder_of(name) / "run.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(script: ModuleType, one_spark: None, tmp_path: Path) -> Iterator[TemporaryProject]:
    """The project of the example, in which nothing has happened yet."""
    del one_spark
    given = {"catalog": "shop.catalog", "folder": tmp_path / "project"}
    with temporary_project(script.PACKAGE, **given) as laid_out:
        yield laid_out
