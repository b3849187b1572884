"""A planted password and a planted key are found nowhere: not in a file, not in a word that is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import sqlalchemy as sa

from backfill_assets_tests.e2e.server import BIN, Project, new_project
from backfill_assets_tests.postgres import PASSWORD
from backfill_assets_tests.toy import land

if TYPE_CHECKING:
    from pathlib import Path

    from backfill_assets_tests.postgres import Server

KEY = "planted-AKIA-7f3b9c"
DAGSTER = "backfill_assets_tests.toy_definitions"


@pytest.fixture
def planted(postgres: Server, tmp_path: Path) -> Project:
    """A project whose state lies behind a password, with a key for an object store at hand."""
    land(str(tmp_path / "landed"))
    return new_project(
        tmp_path / "project",
        tmp_path / "landed",
        BACKFILL_STATE_URL=postgres.create("secrets"),
        AWS_SECRET_ACCESS_KEY=KEY,
        BACKFILL_SPARK_MASTER="local[2]",
        BACKFILL_USER="ada",
        SPARK_CONNECT_AUTHENTICATE_TOKEN=KEY,
    )


@pytest.mark.story
@pytest.mark.spark
@pytest.mark.e2e
def test_no_secret_reaches_a_file_the_state_or_what_is_said(
    planted: Project, postgres: Server, tmp_path: Path
):
    plan = tmp_path / "project" / "plan.json"
    partition = ("--partition", "2024-01-28")
    said = [
        planted.backfill("run", "--select", "toy.sales"),
        planted.backfill("plan", "--restate", "toy.sales:2024-01-28", "--out", str(plan)),
        planted.backfill("apply", str(plan)),
        planted.backfill("history", "toy.sales", "--json"),
        planted.run(
            *(str(BIN / "dagster"), "asset", "materialize", "-m", DAGSTER),
            *("--select", "toy/returns", *partition),
        ),
        planted.backfill("batches", "--json"),
        Project(
            planted.folder,
            settings={
                **planted.settings,
                "BACKFILL_STATE_URL": postgres.url("no_such_database"),
            },
        ).backfill("status"),
    ]
    codes = [run.returncode for run in said]
    assert codes == [0, 2, 0, 0, 0, 0, 1], "\n".join(f"{run.stdout}{run.stderr}" for run in said)
    told = "".join(f"{run.stdout}{run.stderr}" for run in said)
    assert "no_such_database" in told
    assert _found_in(told.encode()) == []
    files = [path for path in planted.folder.rglob("*") if path.is_file()]
    assert {"plan.json", "_delta_log"} <= {part for path in files for part in path.parts}
    assert [path for path in files if _found_in(path.read_bytes())] == []
    assert _found_in(_dumped(postgres)) == []


def _found_in(content: bytes) -> list[str]:
    return [secret for secret in (KEY, PASSWORD) if secret.encode() in content]


def _dumped(postgres: Server) -> bytes:
    """Every row of the state, as PostgreSQL writes it."""
    engine = sa.create_engine(
        sa.make_url(postgres.url("secrets")).set(drivername="postgresql+psycopg")
    )
    with engine.connect() as connection:
        content = connection.scalar(sa.text("select database_to_xml(true, false, '')::text"))
    engine.dispose()
    assert "toy.sales" in str(content)
    return str(content).encode()
