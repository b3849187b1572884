from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from backfill_assets.cli.importing import import_catalog
from backfill_assets.cli.manifest import CatalogError, load
from backfill_assets.cli.origin import Origin
from backfill_assets.cli.project import loaded_fingerprints
from backfill_assets.errors import DeclarationError
from backfill_assets.models.graph import build_graph
from backfill_assets.settings import Settings
from backfill_assets.snapshots.loaded import Loaded

if TYPE_CHECKING:
    from collections.abc import Callable

CATALOG = """
import os
from pathlib import Path

from backfill_assets.models.source import Source
from shop.visits import VISITS
from backfill_assets_tests.builders import a_source

with Path("imports").with_suffix(".log").open("a") as log:  # what it names in full counts
    log.write("once\\n")
print("a word of its own")
MODELS = [VISITS]
SOURCES = [a_source(owner=os.environ.get("SHOP_OWNER", "team:web"))]
"""
VISITS = """
from pathlib import Path

from backfill_assets.models.sql.sql_file import sql_file
from backfill_assets_tests.builders import a_model

WORDS = Path(__file__).with_name("words.txt").read_text()
VISITS = a_model(query=sql_file("visits.sql"), description=WORDS, batch_size=3)
"""
SQL = "SELECT ds, id, cost FROM web.events WHERE ds >= :start_ds AND ds < :end_ds"


@dataclass(frozen=True)
class Shop:
    """Somebody's own project, with a package `shop` in it."""

    folder: Path

    @property
    def package(self) -> Path:
        return self.folder / "shop"

    @property
    def settings(self) -> Settings:
        return Settings(catalog="shop.catalog", data_dir=str(self.folder / "data"))

    @property
    def imports(self) -> int:
        """How often the catalog was imported."""
        return len((self.folder / "imports.log").read_text().splitlines())

    @property
    def manifest(self) -> Path:
        (found,) = (self.folder / "data" / ".cache").iterdir()
        return found

    def load(self) -> Loaded:
        return load(self.settings)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    package = tmp_path / "shop"
    package.mkdir()
    (tmp_path / "data").mkdir()
    files = {"__init__.py": "", "catalog.py": CATALOG, "visits.py": VISITS, "visits.sql": SQL}
    for name, text in {**files, "words.txt": "who came"}.items():
        (package / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("BACKFILL_CACHE_DIR", raising=False)
    return Shop(tmp_path)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The settings of this project's own catalog, imported once."""
    return Settings(cache_dir=str(tmp_path_factory.mktemp("cache")))


def test_declarations_from_the_manifest_are_those_of_the_import(ours: Settings):
    load(ours)  # imports, and keeps the manifest

    kept = load(ours)

    assert kept == import_catalog(ours.catalog)
    models, sources, consumers = kept.graph.models, kept.graph.sources, kept.graph.consumers
    assert consumers
    assert kept == Loaded.of(build_graph(models.values(), sources.values(), consumers.values()))


FUNCTION = """
from backfill_assets_tests.builders import a_model

def visits(inputs, interval):
    from shop.late import RATE
    import elsewhere_late
    return RATE, elsewhere_late.RATE

VISITS = a_model(query=visits)
"""


@pytest.mark.parametrize("edited", ["shop/late.py", "elsewhere/elsewhere_late.py"])
def test_an_edit_of_any_module_that_a_function_imports_is_noticed(
    shop: Shop, edited: str, monkeypatch: pytest.MonkeyPatch
):
    elsewhere = shop.folder.parent / f"{shop.folder.name}_elsewhere"
    elsewhere.mkdir()
    places = {
        "shop/late.py": shop.package / "late.py",
        "elsewhere/elsewhere_late.py": elsewhere / "elsewhere_late.py",
    }
    for place in places.values():
        place.write_text("RATE = 1\n")
    (shop.package / "visits.py").write_text(FUNCTION)
    monkeypatch.syspath_prepend(str(elsewhere))
    before = shop.load()

    places[edited].write_text("RATE = 2\n")
    after = shop.load()

    assert shop.imports == 2
    assert after.snapshots["web.visits"].version != before.snapshots["web.visits"].version


def test_an_unchanged_project_is_not_imported_again(shop: Shop):
    first = shop.load()
    (shop.folder / "notes.txt").write_text("nothing that the catalog reads")

    assert (shop.load(), shop.imports) == (first, 1)


def test_a_file_that_was_only_touched_costs_one_import_and_changes_nothing(shop: Shop):
    first = shop.load()
    os.utime(shop.package / "visits.py", (0, 0))

    assert ([shop.load(), shop.load()], shop.imports) == ([first, first], 2)


def test_data_below_a_package_is_not_read(shop: Shop):
    with (shop.package / "events.parquet").open("wb") as file:
        file.truncate(2**43)  # 8 TiB, of which no block is on the disk

    assert (shop.load(), shop.imports) == (shop.load(), 1)


def _moved(package: Path) -> None:
    """Let the package's name lead elsewhere, where all but one file is as it was."""
    package.rename(package.with_name("first"))
    shutil.copytree(package.with_name("first"), package.with_name("second"))
    (package.with_name("second") / "words.txt").write_text("who stays")
    package.symlink_to(package.with_name("second"))


CHANGES: dict[str, Callable[[Path], object]] = {
    "a module": lambda package: (package / "visits.py").write_text(VISITS.replace("3", "4")),
    "a SQL file": lambda package: (package / "visits.sql").write_text(f"{SQL} AND id > 0"),
    "another file that it reads": lambda package: (package / "words.txt").write_text("who left"),
    "a new module": lambda package: (package / "orders.py").write_text(""),
    "a new SQL file": lambda package: (package / "orders.sql").write_text(SQL),
    "a new package": lambda package: _package(package / "orders"),
    "a file that no code of Python opens": lambda package: _rates(package).write_text("2"),
    "a package that is a link": _moved,
    "a new package that is a link": lambda package: (package / "linked").symlink_to(package.parent),
}


def _rates(package: Path) -> Path:
    (package / "rates").mkdir(exist_ok=True)
    return package / "rates" / "rates.parquet"


def _package(folder: Path) -> None:
    folder.mkdir()
    (folder / "__init__.py").touch()


def test_what_the_import_depended_on_is_imported_again_when_it_changes(shop: Shop):
    after = shop.load()
    for number, (name, change) in enumerate(CHANGES.items(), start=2):
        change(shop.package)

        after = shop.load()

        assert shop.imports == number, name
        assert after == shop.load()
        assert shop.imports == number, name
    assert after == _imported_anew(shop)


def _imported_anew(shop: Shop) -> Loaded:
    """What is told where there is no manifest yet."""
    return load(shop.settings.model_copy(update={"cache_dir": str(shop.folder / "other")}))


def test_a_file_that_has_gone_is_missed(shop: Shop):
    shop.load()
    (shop.package / "visits.sql").unlink()

    with pytest.raises(DeclarationError, match=r"no SQL file 'visits\.sql' beside"):
        shop.load()


def test_a_variable_that_the_catalog_reads_counts_and_no_other(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
):
    shop.load()
    monkeypatch.setenv("SOMETHING_ELSE", "1")
    shop.load()
    assert shop.imports == 1

    monkeypatch.setenv("SHOP_OWNER", "team:shop")

    assert shop.load().graph.sources["web.events"].owner == "team:shop"


@pytest.mark.parametrize("begins", ["f'SHOP_{ROLE}'", '"SHOP_" + ROLE'])
def test_a_variable_counts_whose_name_begins_as_the_catalog_says(
    shop: Shop, begins: str, monkeypatch: pytest.MonkeyPatch
):
    catalog = CATALOG.replace('"SHOP_OWNER"', begins).replace("MODELS", "ROLE = 'OWNER'\nMODELS", 1)
    (shop.package / "catalog.py").write_text(catalog)
    shop.load()

    monkeypatch.setenv("SHOP_OWNER", "team:shop")

    assert shop.load().graph.sources["web.events"].owner == "team:shop"


ALONE = """
from pathlib import Path

from backfill_assets.models.sql.sql_file import sql_file
from backfill_assets_tests.builders import a_model, a_source

with Path("imports").with_suffix(".log").open("a") as log:  # what it names in full counts
    log.write("once\\n")
HERE = Path(__file__).parent
MODELS = [a_model(query=sql_file("sql/visits.sql"), description=(HERE / "words.txt").read_text())]
SOURCES = [a_source()]
"""


@pytest.mark.parametrize(
    ("edited", "imports"),
    [("words.txt", 2), ("sql/visits.sql", 2), ("late.py", 2), ("data/part.txt", 1)],
)
def test_of_a_catalog_in_no_package_what_lies_beside_it_counts_and_what_it_names(
    tmp_path: Path, edited: str, imports: int, monkeypatch: pytest.MonkeyPatch
):
    project, log = tmp_path / "project", tmp_path / "elsewhere"
    for name in ("sql", "data"):
        (project / name).mkdir(parents=True)
    log.mkdir()
    (project / "alone.py").write_text(ALONE)
    (project / "words.txt").write_text("who came")
    (project / "sql" / "visits.sql").write_text(SQL)
    monkeypatch.chdir(log)
    monkeypatch.syspath_prepend(str(project))
    settings = Settings(
        catalog="alone", data_dir=str(project / "data"), cache_dir=str(log / "cache")
    )
    load(settings)

    (project / edited).write_text(f"{SQL} AND id > 0")
    load(settings)

    assert len((log / "imports.log").read_text().splitlines()) == imports


def test_the_data_folder_counts_nowhere(shop: Shop):
    inside = shop.settings.model_copy(update={"data_dir": str(shop.package / "tables")})
    (shop.package / "tables").mkdir()
    load(inside)
    (shop.package / "tables" / "state.db").write_text("a state")

    load(inside)

    assert shop.imports == 1


def test_a_file_elsewhere_counts_that_the_catalog_names(shop: Shop):
    (shop.folder / "config").mkdir()
    elsewhere = shop.folder / "config" / "owner.txt"
    elsewhere.write_text("team:web")
    reads = CATALOG.replace('os.environ.get("SHOP_OWNER", "team:web")', "OWNER").replace(
        "MODELS =", "OWNER = Path('config/owner.txt').read_text()\nMODELS ="
    )
    (shop.package / "catalog.py").write_text(reads)
    shop.load()

    elsewhere.write_text("team:shop")

    assert shop.load().graph.sources["web.events"].owner == "team:shop"


def test_installing_a_package_counts(tmp_path: Path):
    origin = Origin((), (), (), (), installed=(str(tmp_path),))
    before = origin.state(())
    (tmp_path / "shop-1.0.dist-info").mkdir()

    assert origin.state(()) != before


def test_a_damaged_manifest_is_written_anew(shop: Shop):
    first = shop.load()
    damaged = ["", "{", "{}", "null", '{"format": 0}', '{"format": 2}']
    for imports, text in enumerate(damaged, start=2):
        shop.manifest.write_text(text)

        assert [shop.load(), shop.load()] == [first, first]
        assert shop.imports == imports, text


def test_the_manifest_is_for_its_owner_alone(shop: Shop):
    shop.load()

    assert shop.manifest.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_edited_during_the_import_leaves_no_manifest(shop: Shop):
    edits_itself = "Path(__file__).write_text(Path(__file__).read_text() + '#')\n"
    (shop.package / "catalog.py").write_text(CATALOG + edits_itself)

    shop.load()
    shop.load()

    assert shop.imports == 2


def test_a_file_that_goes_during_the_import_leaves_no_manifest(shop: Shop):
    takes_away = "Path(__file__).with_name('words.txt').unlink()\n"
    (shop.package / "catalog.py").write_text(CATALOG + takes_away)
    shop.load()

    with pytest.raises(CatalogError, match=r"words\.txt"):
        shop.load()


def test_two_edits_within_one_second_are_two_edits(shop: Shop, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    sizes: list[int | None] = []
    for size in (4, 5, 6):
        path = shop.package / "visits.py"
        path.write_text(VISITS.replace("3", str(size)))
        os.utime(path, (1_700_000_000, 1_700_000_000))
        sizes.append(shop.load().graph.model("web.visits").batch_size)

    assert sizes == [4, 5, 6]


def test_what_is_on_disk_now_is_told_whatever_this_process_has_imported(shop: Shop):
    was = loaded_fingerprints(shop.settings)
    (shop.package / "visits.sql").write_text(f"-- who came\n{SQL}")
    in_other_words = loaded_fingerprints(shop.settings)
    (shop.package / "visits.sql").write_text(f"{SQL} AND id > 0")

    assert in_other_words == was
    assert loaded_fingerprints(shop.settings) != was


BROKEN = {
    "MODELS = [": (
        CatalogError,
        "catalog 'shop.catalog': shop/catalog.py:1: SyntaxError: '[' was never closed",
    ),
    "MODELS = ()": (CatalogError, "catalog 'shop.catalog': has no SOURCES"),
    f"{CATALOG}\nMODELS = [VISITS, VISITS]": (DeclarationError, "'web.visits' is declared twice"),
    "import os; os._exit(3)": (CatalogError, "its import ended with exit code 3"),
}


@pytest.mark.parametrize(("text", "said"), BROKEN.items())
def test_a_catalog_that_cannot_be_used_is_told_each_time_and_works_when_it_is_mended(
    shop: Shop, text: str, said: tuple[type[Exception], str]
):
    kind, words = said
    (shop.package / "catalog.py").write_text(text)
    for _ in range(2):
        with pytest.raises(kind, match=re.escape(words)):
            shop.load()

    (shop.package / "catalog.py").write_text(CATALOG)

    assert set(shop.load().graph.models) == {"web.visits"}
