"""The component of `dg`: in a project's `defs.yaml` it gives what `build_definitions` gives."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest
from dagster.components.core.package_entry import get_package_objects_in_module

from backfill_assets import BackfillProject
from backfill_assets.errors import DeclarationError
from backfill_assets_tests.orchestration.rendering import rendered
from backfill_assets_tests.orchestration.test_definitions import STORED

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
TYPE = "backfill_assets.orchestration.component.BackfillProject"
CATALOG = "backfill_assets_tests.toy"
ADDED = ("  metadata dagster/code_references", "  metadata dagster/component_origin")
"""What Dagster adds to every asset of a component: where it stands."""
_PROJECT = """
[tool.dg]
directory_type = "project"

[tool.dg.project]
root_module = "shop_of_dg"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project of `dg`, as `create-dagster project` begins one."""
    (tmp_path / "pyproject.toml").write_text(_PROJECT)
    (tmp_path / "shop_of_dg/defs/backfill").mkdir(parents=True)
    for folder in ("shop_of_dg", "shop_of_dg/defs"):
        (tmp_path / folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop_of_dg"]:
        del sys.modules[name]


def _declare(project: Path, text: str) -> None:
    (project / "shop_of_dg/defs/backfill/defs.yaml").write_text(f"type: {TYPE}\n{text}")


def _loaded(project: Path) -> dg.Definitions:
    return dg.load_from_defs_folder(path_within_project=project)


def _shown(defs: dg.Definitions) -> list[str]:
    return [line for line in rendered(defs).splitlines() if line not in ADDED]


def _built(catalog: str) -> dg.Definitions:
    from backfill_assets import build_definitions  # noqa: PLC0415

    declared: Any = import_module(catalog)
    consumers = getattr(declared, "CONSUMERS", ())
    return build_definitions(models=declared.MODELS, sources=declared.SOURCES, consumers=consumers)


def test_a_project_of_dg_shows_what_build_definitions_makes(project: Path):
    _declare(project, f"attributes:\n  catalog: {CATALOG}\n")

    found = _loaded(project)

    dg.Definitions.validate_loadable(found)
    assert _shown(found) == _shown(_built(CATALOG))


def test_without_attributes_the_catalog_is_the_one_of_the_settings(
    project: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("BACKFILL_CATALOG", CATALOG)
    _declare(project, "")

    assert _shown(_loaded(project)) == _shown(_built(CATALOG))


def test_with_its_landings_this_project_is_what_it_is_without_a_component():
    component = BackfillProject(
        catalog="backfill_assets.pipelines.catalog", landings="backfill_assets.pipelines.landing"
    )

    assert rendered(dg.build_defs_for_component(component)) == STORED.read_text()


def test_the_sensor_requests_the_same_jobs_in_a_component_as_outside_of_one(project: Path):
    _declare(project, f"attributes:\n  catalog: {CATALOG}\n")

    names = [sensor.targets for sensor in _loaded(project).sensors or ()]

    assert names == [sensor.targets for sensor in _built(CATALOG).sensors or ()]


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"catalog": "no_such_shop.catalog"}, "there is no module no_such_shop; expected a module"),
        ({"catalog": "backfill_assets.errors"}, "catalog 'backfill_assets.errors' has no MODELS"),
        (
            {"catalog": CATALOG, "landings": "backfill_assets.errors"},
            "landings 'backfill_assets.errors' has no LANDINGS; expected a module with",
        ),
    ],
)
def test_a_module_that_declares_nothing_is_named_with_what_it_should_declare(
    attributes: dict[str, str], said: str
):
    with pytest.raises(DeclarationError) as told:
        dg.build_defs_for_component(BackfillProject(**attributes))

    assert said in str(told.value)


def test_a_module_that_the_catalog_lacks_is_not_taken_for_the_catalog(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "catalog_that_imports.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        dg.build_defs_for_component(BackfillProject(catalog="catalog_that_imports"))


def test_dg_finds_the_component_in_the_module_that_the_package_registers():
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    registered = package["project"]["entry-points"]["dagster_dg_cli.registry_modules"]

    found = [
        f"{module}.{name}"
        for module in registered.values()
        for name, _ in get_package_objects_in_module(import_module(module))
    ]

    assert found == [TYPE]
