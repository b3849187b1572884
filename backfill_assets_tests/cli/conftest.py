"""The toy shop as a project in a folder of its own, and the `backfill` command in this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from backfill_assets.cli.app import app, call
from backfill_assets_tests.cli.prepared import Prepared
from backfill_assets_tests.fake_warehouse import fake_warehouse
from backfill_assets_tests.new_state import begin_sqlite

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from backfill_assets_tests.fake_session import Session


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON
        return json.loads(self.out)


@dataclass(frozen=True)
class Backfill:
    """Calls `backfill` with arguments."""

    captured: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Ended:
        self.captured.readouterr()
        code = call(app, arguments)
        said = self.captured.readouterr()
        return Ended(code, said.out, said.err)


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Prepared:
    """A project with nothing in it yet but the toy shop's declarations and a state."""
    for name in ("COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE", "BACKFILL_STATE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path / "data"))
    # One import of the shop's catalog serves all tests.
    monkeypatch.setenv("BACKFILL_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("BACKFILL_CATALOG", "backfill_assets_tests.toy")
    monkeypatch.delenv("BACKFILL_USER", raising=False)
    monkeypatch.setattr("backfill_assets.cli.project.os_user", lambda: "ada")
    # What a verb says must not depend on how quick this machine is.
    monkeypatch.setattr("backfill_assets.cli.progress.LASTING", 3600.0)
    begin_sqlite(tmp_path / "data" / "state.db")
    return Prepared(tmp_path / "data")


class Started:
    """The session of a command that has started it already."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def __call__(self) -> Session:
        return self.session

    def stop(self) -> None:
        """Leave it to the test."""


@pytest.fixture
def computing(shop: Prepared, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Commands compute rows, without a JVM."""
    del shop
    with fake_warehouse() as session:
        monkeypatch.setattr("backfill_assets.cli.project.LazySpark", lambda _: Started(session))
        yield


@pytest.fixture
def backfill(shop: Prepared, capsys: pytest.CaptureFixture[str]) -> Backfill:
    """The command, in the project of `shop`."""
    del shop
    return Backfill(capsys)
