"""A scratch project with the ledger: its folder, its source, and the variables of its commands."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, field
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from backfill_assets.models.graph import build_graph
from backfill_assets.settings import Settings
from backfill_assets_tests.faults.oracle import MODELS, Cells, Move, World
from backfill_assets_tests.spark import jars_dir

if TYPE_CHECKING:
    from collections.abc import Iterable

    from backfill_assets.models.graph import Graph

CHECKOUT = Path(__file__).resolve().parents[2]
LEASE = 60
_ARROW = pa.schema(
    [
        ("move_id", pa.int64()),
        ("account", pa.string()),
        ("moved_at", pa.timestamp("us", "UTC")),
        ("amount", pa.decimal128(18, 2)),
    ]
)
COLUMNS = {
    "ledger.entries": ("move_id", "account", "ds", "amount"),
    "ledger.daily": ("ds", "account", "amount", "moves"),
    "ledger.three_days": ("ds", "amount"),
    "ledger.hourly": ("moved_in", "account", "amount", "moves"),
    "ledger.monthly": ("month_start", "amount", "amount_before"),
}


@dataclass(frozen=True)
class Ledger:
    """A folder with the catalog, a data folder, and a clock that can be moved.

    Attributes:
        folder: of all that.
        state_url: of its state; empty means an SQLite file in the data folder.
        more: further variables of its commands.
    """

    folder: Path
    state_url: str = ""
    more: dict[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def clock(self) -> Path:
        """Holds by how many seconds the clock of every process here is ahead."""
        return self.folder / "clock"

    @property
    def settings(self) -> Settings:
        return Settings.model_validate(
            {
                "data_dir": str(self.data),
                "catalog": "kept.catalog",
                "state_url": self.state_url,
            }
        )

    @property
    def variables(self) -> dict[str, str]:
        """What a person has exported who works here."""
        return {
            "BACKFILL_CATALOG": "kept.catalog",
            "BACKFILL_DATA_DIR": str(self.data),
            "BACKFILL_STATE_URL": self.state_url,
            "BACKFILL_JARS_DIR": str(jars_dir().resolve()),
            "BACKFILL_LEASE_SECONDS": str(LEASE),
            "BACKFILL_PROMISE_DAYS": "2",
            "BACKFILL_SPARK_MEMORY": "1g",
            "BACKFILL_SPARK_MASTER": "local[2]",
            "BACKFILL_USER": "ada",
            "FAULT_CLOCK": str(self.clock),
            "PYTHONPATH": f"{self.folder}:{CHECKOUT}",
            "COLUMNS": "200",
            "NO_COLOR": "1",
            **self.more,
        }

    @property
    def ahead(self) -> float:
        """By how many seconds the clock is ahead."""
        return float(self.clock.read_text()) if self.clock.exists() else 0.0

    def now(self) -> float:
        """Give the time that the processes of the project see, in seconds since 1970."""
        return time.time() + self.ahead

    def move_clock(self, seconds: float) -> None:
        """Let that much time pass for every process of the project, running ones too."""
        fresh = self.clock.with_suffix(".new")
        fresh.write_text(str(self.ahead + seconds))
        fresh.replace(self.clock)

    def pass_lease(self) -> None:
        """Let every claim and lock of a silent process lapse."""
        self.move_clock(LEASE + 1)

    def land(self, moves: Iterable[Move]) -> None:
        """Let the source hold these moves, as somebody else would land them."""
        rows = [
            {"move_id": m.move_id, "account": m.account, "moved_at": m.moved_at, "amount": m.amount}
            for m in moves
        ]
        table = pa.Table.from_pylist(rows, _ARROW)
        write_deltalake(str(self.data / "sources" / "moves"), table, mode="overwrite")

    def landed(self) -> list[Move]:
        """Read the source back."""
        table = DeltaTable(str(self.data / "sources" / "moves")).to_pyarrow_table()
        return sorted(Move(**row) for row in table.to_pylist())

    def graph(self) -> Graph:
        """Load the declarations as they are in the folder now."""
        spec = spec_from_file_location("kept_catalog", self.folder / "kept" / "catalog.py")
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return build_graph(module.MODELS, module.SOURCES)

    def double_daily(self) -> None:
        """Edit the model `daily`: amounts count twice."""
        path = self.folder / "kept" / "catalog.py"
        old, new = "CAST(SUM(amount) AS DECIMAL(18, 2)) AS amount, COUNT", "SUM(2 * amount)"
        text = path.read_text()
        assert text.count(old) == 1
        new = old.replace("SUM(amount)", new)
        path.write_text(text.replace(old, new))


def new_ledger(folder: Path, *, state_url: str = "", more: dict[str, str] | None = None) -> Ledger:
    """Lay it out; nothing is landed."""
    made = Ledger(folder, state_url, more or {})
    (folder / "kept").mkdir(parents=True)
    made.data.mkdir()
    shutil.copy(Path(__file__).with_name("catalog.py"), folder / "kept" / "catalog.py")
    (folder / "kept" / "__init__.py").touch()
    return made


def copied(base: Ledger, folder: Path) -> Ledger:
    """Copy a ledger whose state is a file; the state names its tables below the data folder."""
    shutil.copytree(base.folder, folder, ignore=shutil.ignore_patterns(".cache"))
    return Ledger(folder, more=base.more)


def cells_at(model: str, path: str, version: int) -> Cells:
    """Read a table's rows at a pin, by the start of their cell, with another library than ours."""
    table = DeltaTable(path, version=version).to_pyarrow_table()
    found: Cells = {}
    for row in table.to_pylist():
        found.setdefault(row["_cell"], []).append(tuple(row[name] for name in COLUMNS[model]))
    return {cell: sorted(rows, key=repr) for cell, rows in sorted(found.items())}


def in_order(world: World) -> World:
    """The same, its rows in the order in which `cells_at` gives them."""
    return {
        model: {cell: sorted(rows, key=repr) for cell, rows in sorted(world[model].items()) if rows}
        for model in MODELS
    }
