from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from backfill_assets.cli.app import VERBS
from backfill_assets.cli.lazy_commands import Verbs

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill
    from backfill_assets_tests.cli.prepared import Prepared

SLOW = {"pyspark", "pandera", "pandas", "dagster", "alembic"}
IMPORTED = f"""
import json, sys
from backfill_assets.cli.app import app, call

code = call(app, sys.argv[1:])
print(json.dumps([code, sorted({SLOW} & sys.modules.keys())]), file=sys.stderr)
"""


@pytest.fixture
def landed(shop: Prepared) -> Prepared:
    """The shop with a source that has landed, and one batch done."""
    rows = pa.table({"ds": pa.array([], pa.date32())})
    deltalake.write_deltalake(shop.data / "sources" / "raw_sales", rows)
    shop.fill("toy.sales", "2024-01-28", "2024-01-30")
    return shop


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        (["status"], 0),
        (["plan"], 2),
        (["envs"], 0),
        (["batches"], 0),
        (["why", "toy.sales", "2024-01-29"], 0),
        (["--help"], 0),
    ],
    ids=lambda parameter: parameter[0] if isinstance(parameter, list) else "",
)
def test_looking_at_an_unchanged_project_imports_nothing_slow(
    landed: Prepared, asked: list[str], code: int
):
    del landed

    assert _ended(*asked)[1] == [code, []]


def test_building_and_publishing_cells_that_need_no_query_imports_nothing_slow(
    shop: Prepared, backfill: Backfill
):
    del shop
    plan_id = backfill("plan", "--empty", "--select", "toy.returns", "--json").json["plan_id"]

    for verb in ("apply", "promote"):
        out, ended = _ended(verb, plan_id, "--yes", "--json")

        assert ended == [0, []], out


def _ended(*asked: str) -> tuple[str, list[Any]]:
    """Run a command in a process of its own; give its output, its exit code and what it imported."""
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTED, *asked], capture_output=True, text=True, check=True
    )
    return ended.stdout + ended.stderr, json.loads(ended.stderr.splitlines()[-1])


def test_every_verb_says_in_the_list_what_its_own_help_says_first():
    verbs = Verbs(VERBS)

    for verb in VERBS:
        assert verbs.says(verb) == " ".join(verbs[verb].help.split("\n\n")[0].split())


def test_a_verb_that_is_mistyped_is_told_what_may_be_meant(backfill: Backfill):
    ended = backfill("statuz")

    assert ended.code == 1
    assert "No such command 'statuz'. Did you mean 'status'" in ended.err


def test_help_lists_every_verb(backfill: Backfill):
    lines = [line.split() for line in backfill("--help").lines]

    assert [words[0] for words in lines if words and words[0] in VERBS] == list(VERBS)
