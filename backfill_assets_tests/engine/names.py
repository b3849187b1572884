"""What engines find by name is what environments publish: file by file, and row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError

from backfill_assets.engine.project.iceberg import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.table import Table

    from backfill_assets.snapshots.environment import Pointer
    from backfill_assets.state.store import Store
    from backfill_assets_tests.engine.world import World


def catalogue(root: Path | str) -> SqlCatalog:
    """Open the state's catalogue as any reader does."""
    return SqlCatalog(CATALOGUE, uri=f"sqlite:///{root}/state.db", init_catalog_tables="false")


def rows_by_name(root: Path | str, name: str, *columns: str) -> list[tuple[Any, ...]]:
    """Read what a name stands for now, in the order of its rows."""
    found = catalogue(root).load_table(name).scan(selected_fields=columns or ("*",)).to_arrow()
    return sorted(tuple(row.values()) for row in found.to_pylist())


def files_by_name(table: Table) -> set[str]:
    """Name the data files of a table as PyIceberg plans to read them."""
    return {task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()}


def names_followed(world: World) -> int:
    """Make sure that every published pointer of one table has a name for exactly its files; count them."""
    reader, count = catalogue(world.root), 0
    for environment, at in _read(world.store):
        name = f"{environment}.{at.model}"
        if at.delta_version < 0 or at.under:
            try:
                reader.load_table(name)
            except NoSuchTableError:
                continue
            raise AssertionError(f"{name} has a name, though no table alone is it")
        path = world.store.versions.version_path(at.version)
        if not DeltaTable.is_deltatable(path):
            continue  # a test has lost it
        delta = DeltaTable(path, version=at.delta_version)
        there, expected = files_by_name(reader.load_table(name)), {*delta.file_uris()}
        assert there == expected, f"{name}: {sorted(there)[:1]}, not {sorted(expected)[:1]}"
        count += 1
    return count


def _read(store: Store) -> Iterator[tuple[str, Pointer]]:
    for environment in store.environments.by_name():
        if not environment.is_workspace:
            pointers = store.environments.pointers(environment.name)
            yield from ((environment.name, at) for at in pointers.values())
