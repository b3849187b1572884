from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import typer

from backfill_assets.cli.app import INTERRUPTED, call
from backfill_assets.cli.project import now
from backfill_assets.state.store import Store

if TYPE_CHECKING:
    from backfill_assets_tests.cli.conftest import Backfill

WRONG = {
    ("status", "--select", "toy.sale"): "there is no model or source 'toy.sale'; did you mean",
    ("status", "--select", "toy.raw_sales"): "'toy.raw_sales' selects no model",
    ("run", "--select", "nope.*"): "'nope.*' selects no model; use a name, a glob such as",
    ("map", "tag:nope=*"): "'tag:nope=*' selects no model",
    ("status", "--env", "staging"): "staging",
    ("status", "--zzzz"): "No such option: --zzzz (see `backfill status --help`)",
    (
        "plan",
        "--reason",
        "Zo\udceb",
    ): r"argument 'Zo\udceb' is no text in UTF-8; set the terminal",
    ("fly",): "No such command 'fly'",
    ("why", "toy.sales"): "Missing argument 'interval'",
    ("why", "toy.sales", "2024-1-1"): "'2024-1-1' is not the key of a cell of one day in UTC;",
    (
        "why",
        "toy.sales",
        "2024-01-31..2024-01-29",
    ): "the range 2024-01-31 to 2024-01-29 holds no time:",
    ("why", "toy.sales", "2024-01-31.."): "the range '2024-01-31..' has no end; expected two",
    ("why", "toy.sales", "..2024-01-31"): "the range '..2024-01-31' has no start; expected two",
    ("why", "toy.sales", "2024-02-30"): "'2024-02-30' is no day of the calendar; a right one is",
    ("why", "toy.sales", "9999-12-31"): "'9999-12-31' is not of the years 2 to 9998; a right one",
    (
        "history",
        "toy.sales",
        "0001-01-01..9999-12-31",
    ): "'0001-01-01' is not of the years 2 to 9998;",
    ("run", "--start", "2024-02-30"): "'2024-02-30' is no day of the calendar; give a date such as",
    ("run", "--start", "2024-01-31", "--end", "2024-01-29"): "it ends where it starts, or before",
    ("run", "--start", "soon"): "'soon' is neither a date nor an instant;",
    ("run", "--start", "2019-01-01", "--end", "2019-01-31"): "lies wholly outside the model's life",
    ("run", "--start", "2124-01-01"): "the start 2124-01-01 lies in the future",
    (
        "batches",
        "--model",
        "toy.raw_sales",
    ): "'toy.raw_sales' is a source: another system writes it",
    ("batches", "--model", "toy.sale"): "did you mean 'toy.sales'?",
    ("batches", "--limit", "none"): "Invalid value for '--limit'",
    ("audit", "--select", "toy.sale"): "did you mean 'toy.sales'?",
    ("audit", "--min", "90"): "--min has no effect without --mutate; give --mutate too",
    (
        "audit",
        "--mutate",
        "toy.sales",
        "--junit",
        "a.xml",
    ): "--mutate and --junit exclude each other",
    (
        "audit",
        "--mutate",
        "toy.sales",
        "--select",
        "toy.*",
    ): "--mutate and --select exclude each other",
    ("plan", "--json", "--markdown"): "--json and --markdown exclude each other, and were given",
    ("show", "p1", "--json", "--watch"): "--json and --watch exclude each other, and were given",
    (
        "batches",
        "--limit",
        "99999999999999999999",
    ): "Input should be less than or equal to 2147483647",
    ("limit", "all", "99999999999999999999"): "Input should be less than or equal to 2147483647",
    ("plan", "--dual-run", "99999999999"): "--dual-run 99999999999 is no number of days; give 0 to",
    ("results", "list", "--env", "nope"): "environment 'nope' does not exist; there is prod",
    ("batches", "--all"): "--all has no effect without --failed; give --failed too",
    ("batches", "1a2b", "--failed"): "BATCH and --failed exclude each other, and were given",
    (
        "metrics",
        "--serve",
        "9464",
        "--json",
    ): "--serve and --json exclude each other, and were given",
    ("evidence", "report", "p1", "--markdown", "--out", "a"): "--markdown and --out exclude each",
}


@pytest.mark.parametrize(("asked", "said"), WRONG.items())
def test_what_cannot_be_done_is_one_line_on_stderr_and_exit_code_1(
    backfill: Backfill, asked: tuple[str, ...], said: str
):
    ended = backfill(*asked)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("error: ")
    assert ended.err.count("\n") == 1
    assert said in ended.err


SETTINGS = {
    "BACKFILL_MAX_BATCHES": (
        "many",
        "BACKFILL_MAX_BATCHES is 'many'; expected a whole number of at least 1; correct",
    ),
    "BACKFILL_LEASE_SECONDS": (
        "0",
        "BACKFILL_LEASE_SECONDS is '0'; expected a number above 0 and up to 31536000; correct it in",
    ),
    "BACKFILL_PLAN_DAYS": (
        "9999999",
        "BACKFILL_PLAN_DAYS is '9999999'; expected a whole number of at least 1 and up to 36500;",
    ),
    "BACKFILL_PROMISE_DAYS": ("9999999", "BACKFILL_PROMISE_DAYS is '9999999'; expected a whole"),
    "BACKFILL_ENVIRONMENT_DAYS": ("99999999", "BACKFILL_ENVIRONMENT_DAYS is '99999999'; expected"),
    "BACKFILL_SPARK_PATIENCE": ("inf", "BACKFILL_SPARK_PATIENCE is 'inf'; expected a number above"),
    "BACKFILL_CATALOG": ("no_such_package.catalog", "catalog 'no_such_package.catalog': "),
    "BACKFILL_DATA_DIR": (
        "s3://bucket/data",
        "BACKFILL_STATE_URL is '': the state can't be stored in",
    ),
    "BACKFILL_STATE_URL": ("mysql://localhost/state", "mysql"),
}


@pytest.mark.parametrize(("setting", "value", "said"), [(k, *v) for k, v in SETTINGS.items()])
def test_a_setting_that_cannot_be_is_named(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, setting: str, value: str, said: str
):
    monkeypatch.setenv(setting, value)

    ended = backfill("status")

    assert (ended.code, ended.out) == (1, "")
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_a_data_folder_that_cannot_be_made_is_named(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path / "file" / "data"))

    ended = backfill("run")

    assert ended.code == 1
    assert ended.err.startswith(f"error: the data folder {tmp_path}/file/data can't be used: ")


def test_a_data_folder_that_is_not_there_is_not_made_by_a_verb_that_looks(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    state = f"sqlite:///{tmp_path / 'state.db'}"
    Store.open(state, clock=now, lease_seconds=60, data_root=str(tmp_path / "absent")).close()
    monkeypatch.setenv("BACKFILL_STATE_URL", state)
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(tmp_path / "absent"))

    assert backfill("status").code == 0
    assert not (tmp_path / "absent").exists()


CATALOGS = {
    "MODELS = [": "broken.py:1: SyntaxError: '[' was never closed; correct it there",
    "MODELS = SOURCES = undefined": "broken.py:1: NameError: name 'undefined' is not defined; correct",
    "import absent": "broken.py:1: ModuleNotFoundError: No module named 'absent'; correct it there",
    "from pyspark.sql.types import ArrayType\nMODELS = ArrayType('int')": (
        "broken.py:2: AssertionError: elementType int should be an instance of "
        "<class 'pyspark.sql.types.DataType'>; correct it there"
    ),
    "MODELS = ()": "has no SOURCES; name a module with MODELS and SOURCES in BACKFILL_CATALOG",
}


def _name_catalog(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the module `broken`, and let the settings name it as the catalog."""
    (folder / "broken.py").write_text(text)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    monkeypatch.setenv("BACKFILL_CATALOG", "broken")
    monkeypatch.chdir(folder)


@pytest.mark.parametrize(("text", "said"), CATALOGS.items())
def test_a_catalog_that_cannot_be_used_is_named_with_the_place(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, said: str
):
    _name_catalog(text, tmp_path, monkeypatch)

    ended = backfill("status")

    assert ended.code == 1
    assert ended.err.startswith(f"error: catalog 'broken': {said}")


_NO_SESSION = (
    "Error: [SESSION_OR_CONTEXT_NOT_EXISTS] SparkContext or SparkSession should be created first."
)


@pytest.mark.parametrize(
    "text",
    ["from pyspark.sql.functions import udf\nlower = udf(str.lower, 'string')", "from pyspark.sql.functions import col\nday = col('day')"],
    ids=["type", "column"],
)  # fmt: skip
def test_a_catalog_that_needs_a_session_of_spark_is_told_what_to_write_instead(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
):
    _name_catalog(text, tmp_path, monkeypatch)

    ended = backfill("status")

    assert ended.code == 1
    assert ended.err.startswith("error: catalog 'broken': broken.py:2: ")
    assert "Error; a catalog is loaded without Spark: " in ended.err.replace(_NO_SESSION, "Error")
    assert "such as StringType()" in ended.err


@pytest.mark.parametrize(
    ("text", "said"),
    {
        "MODELS, SOURCES = 5, ()": "MODELS has 5, which is no Model; expected a list of Models",
        "MODELS, SOURCES = ('shop.days',), ()": "MODELS has 'shop.days', which is no Model",
        "MODELS, SOURCES = (), None": "SOURCES has None, which is no Source",
        "MODELS, SOURCES, CONSUMERS = (), (), [1]": "CONSUMERS has 1, which is no Consumer",
    }.items(),
)
def test_a_catalog_that_holds_something_else_than_declarations_is_refused(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, said: str
):
    _name_catalog(text, tmp_path, monkeypatch)

    ended = backfill("status")

    assert ended.code == 1
    assert ended.err.startswith(f"error: {said}")
    assert ended.err.count("\n") == 1


def test_a_catalog_that_is_installed_is_told_with_its_line_too(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    installed = tmp_path / "site-packages"
    installed.mkdir()
    (installed / "broken.py").write_text("import json\nMODELS = json.loads('{')\n")
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.delitem(sys.modules, "broken", raising=False)
    monkeypatch.setenv("BACKFILL_CATALOG", "broken")
    monkeypatch.chdir(tmp_path)

    ended = backfill("status")

    assert ended.err.startswith(
        "error: catalog 'broken': site-packages/broken.py:2: JSONDecodeError: "
    )
    assert "correct it there" in ended.err


def test_a_wrong_declaration_is_told_with_the_line_of_the_project_that_makes_it(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "lives.py").write_text(
        "from backfill_assets import Daily\n\nLIFE = Daily(start='2024-13-01')\n"
    )
    (tmp_path / "living.py").write_text("from lives import LIFE\n")
    monkeypatch.setenv("BACKFILL_CATALOG", "living")
    monkeypatch.chdir(tmp_path)

    ended = backfill("status")

    assert ended.code == 1
    assert ended.err.startswith("error: lives.py:3: '2024-13-01' is ")


NOT_KNOWN = ("why", "shop.revenue", "2024-01-01"), ("status", "--select", "shop.*")


@pytest.mark.parametrize("asked", NOT_KNOWN)
def test_where_no_catalog_is_named_a_model_that_is_not_known_is_told_with_the_setting(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: tuple[str, ...]
):
    monkeypatch.chdir(tmp_path)  # here lies no .env
    named = backfill(*asked)
    monkeypatch.delenv("BACKFILL_CATALOG")

    unnamed = backfill(*asked)

    assert (named.code, unnamed.code) == (1, 1)
    assert "BACKFILL_CATALOG" not in named.err
    assert unnamed.err.endswith(
        "BACKFILL_CATALOG is not set, so these are the sample models: name your catalog in it\n"
    )


def test_a_sample_that_may_be_meant_is_named_in_a_sentence_of_its_own(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.chdir(tmp_path)  # here lies no .env
    monkeypatch.delenv("BACKFILL_CATALOG")

    ended = backfill("why", "commerce.order", "2024-01-01")

    assert "did you mean 'commerce.orders'? BACKFILL_CATALOG is not set" in ended.err


def test_the_catalog_is_found_in_the_current_folder(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "catalog_of_here.py").write_text("from backfill_assets_tests.toy import *\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("BACKFILL_CATALOG", "catalog_of_here")
    monkeypatch.chdir(tmp_path)

    assert backfill("status").code == 0


def test_an_interrupt_ends_with_130_and_says_what_to_do(capsys: pytest.CaptureFixture[str]):
    app = typer.Typer()

    @app.command()
    def interrupted() -> None:
        raise KeyboardInterrupt

    assert call(app, []) == INTERRUPTED
    assert capsys.readouterr().err == (
        "stopped: committed cells are kept; run the same command again to build the rest\n"
    )


@pytest.mark.parametrize("words", [("--version",), ("status", "--help")], ids=["few", "many"])
def test_output_for_which_a_disk_has_no_room_is_told_in_a_line(words: tuple[str, ...]):
    asked = [sys.executable, "-m", "backfill_assets.cli.app", *words]
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(asked, stdout=full, stderr=subprocess.PIPE, text=True, check=False)

    assert ended.returncode == 1
    assert ended.stderr == (
        "error: No space left on device where this command writes, its output included; free some space, and run the "
        "same command again\n"
    )


def test_a_defect_keeps_its_traceback():
    app = typer.Typer()

    @app.command()
    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        call(app, [])
