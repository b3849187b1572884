"""What the README and the docs promise, done."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import deltalake
import pyarrow as pa
import pytest

from backfill_assets.models import audit
from backfill_assets.models.consumer import Consumer, Reading
from backfill_assets.models.kind import IncrementalByTimeRange, IncrementalByUniqueKey
from backfill_assets.models.model import Model
from backfill_assets.models.source import Source, WhenEmpty
from backfill_assets.models.upstream import Upstream
from backfill_assets.settings import Settings
from backfill_assets_tests.spark import jars_dir

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
LANDED = {date(2024, 1, 1): 1050, date(2024, 1, 2): 2000, date(2024, 1, 31): 25}


def test_every_make_command_exists():
    named = set(re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+) ", README, re.MULTILINE))
    targets = re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert {name for pair in named for name in pair if name} <= set(targets)


def test_the_table_of_settings_is_the_settings():
    table = re.findall(r"^\| `(BACKFILL_\w+)` \| .+ \| (.+) \|$", README, re.MULTILINE)

    assert [name for name, _ in table] == [
        f"BACKFILL_{name.upper()}"
        for name, field in Settings.model_fields.items()
        if not isinstance(field.validation_alias, str)  # a variable of Java's own
    ]
    for name, said in table:
        default = Settings.model_fields[name.removeprefix("BACKFILL_").lower()].default
        assert not default or float_or_text(said.strip("`")) == float_or_text(str(default))


def float_or_text(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))

    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_a_host_or_a_folder_of_one_machine(page: Path):
    text = page.read_text(encoding="utf-8")

    assert (
        re.findall(r"https?://(?!localhost[:/])\S+|(?<![\w.$])/(?:home|work|tmp|root)/", text) == []
    )


@pytest.mark.parametrize("declared", [Model, Source, Upstream, Consumer, Reading])
def test_every_declaration_is_explained(declared: type):
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")

    names = [field.name for field in dataclasses.fields(declared)]
    assert [name for name in names if not re.search(rf"\b{name}\b=?", text)] == []


def test_every_kind_audit_and_policy_is_explained():
    text = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    kinds = (IncrementalByTimeRange, IncrementalByUniqueKey)
    options = [field.name for kind in kinds for field in dataclasses.fields(kind)]
    audits = [
        "row_rule", "not_null", "accepted_range", "accepted_values", "unique",
        "row_count_within", "references", "reconciles",
    ]  # fmt: skip

    assert all(hasattr(audit, name) for name in audits)
    policies = [f"WhenEmpty.{policy.name}" for policy in WhenEmpty]
    assert [word for word in (*options, *audits, *policies) if word not in text] == []


@dataclasses.dataclass(frozen=True)
class Package:
    """The README's own package, in a folder of its own."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        env = {
            **{name: value for name, value in os.environ.items() if name != "BACKFILL_STATE_URL"},
            "BACKFILL_CATALOG": "shop.catalog",
            "BACKFILL_DATA_DIR": str(self.folder / "data"),
            "BACKFILL_JARS_DIR": str(jars_dir()),
            "BACKFILL_SPARK_MASTER": "local[2]",
            "BACKFILL_SPARK_MEMORY": "1g",
            "PYTHONPATH": str(ROOT),
        }
        return subprocess.run(
            [sys.executable, "-m", *command],
            cwd=self.folder,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )

    def backfill(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("backfill_assets.cli.app", *arguments)


@pytest.fixture
def package(tmp_path: Path) -> Package:
    (code,) = re.findall(r'```python\n("""A shop of one model.+?)```', README, re.DOTALL)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "catalog.py").write_text(code)
    return Package(tmp_path)


def test_a_package_of_somebody_else_has_the_command(package: Package):
    ended = package.backfill("status", "--json")

    assert ended.returncode == 0, ended.stderr
    (row,) = json.loads(ended.stdout)["models"]
    assert (row["model"], row["missing"]) == ("shop.revenue", 31)


def test_a_package_of_somebody_else_loads_in_dagster(package: Package):
    code = """
import dagster as dg
from shop.catalog import defs

dg.Definitions.validate_loadable(defs)
print(sorted(key.to_user_string() for key in defs.resolve_all_asset_keys()))
"""
    (package.folder / "check_definitions.py").write_text(code)

    ended = package.run("check_definitions")

    assert ended.stdout == "['shop/raw_orders', 'shop/revenue']\n", ended.stderr


@pytest.mark.spark
def test_a_package_of_somebody_else_is_filled_and_read_by_every_reader(
    package: Package, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
):
    _land(package.folder / "data" / "sources" / "raw_orders")

    first = package.backfill("run", "--json")
    again = package.backfill("run")

    assert first.returncode == 0, first.stderr
    assert json.loads(first.stdout)["models"]["shop.revenue"]["cells"] == 31
    assert " WARN " not in first.stderr
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("prod: nothing to do")
    monkeypatch.setenv("BACKFILL_DATA_DIR", str(package.folder / "data"))
    frames = list(_read_as_the_readme_does(spark))
    assert [set(frame.columns) - {"_cell"} for frame in frames] == [{"ordered_on", "amount"}] * 5
    counted = [frame.count() for frame in frames[:2]] + [len(frame) for frame in frames[2:]]
    assert counted == [len(LANDED)] * 5


def _land(path: Path) -> None:
    amounts = pa.array(list(LANDED.values()), pa.int64())
    path.parent.mkdir(parents=True)
    deltalake.write_deltalake(
        str(path), pa.table({"ordered_on": pa.array(list(LANDED), pa.date32()), "amount": amounts})
    )


def _read_as_the_readme_does(spark: SparkSession) -> Iterator[Any]:
    """Run the README's lines on reading, one after the other; give each frame."""
    (code,) = re.findall(r"```python\n(import duckdb.+?)```", README, re.DOTALL)
    names: dict[str, Any] = {"spark": spark}
    for line in code.replace("marketing.campaign_performance", "shop.revenue").splitlines():
        exec(line, names)  # noqa: S102 - the README's own
        if line.startswith("frame = "):
            yield names["frame"]
