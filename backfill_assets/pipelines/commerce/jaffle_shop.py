"""Simulate the Jaffle Shop with dbt Labs' `jafgen`, reproducibly by a seed.

jafgen draws from the global generators of Python, NumPy and Faker, and names things by uuid4. So it
runs in a process of its own, where all four are seeded: one seed gives the same history, ids included.
`python -m backfill_assets.pipelines.commerce.jaffle_shop FOLDER --years 1 --seed 7` runs this process.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import uuid
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import csv

from backfill_assets.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

SEED = 7
EXTRACT = Path(__file__).parent / "extract"
"""The first fourteen days of the year with `SEED`, for tests."""

FILES = ("orders", "items", "products", "stores", "customers", "supplies")


def _shop_simulation(*, exit_code: int, stderr: str) -> RequestError:
    lines = stderr.strip().splitlines()[-1:] or ["nothing"]
    return RequestError(
        found=f"jafgen ended with exit code {exit_code}, saying: {lines[0]}",
        expected="its csv files",
        do="Check that jafgen (the extra `demo`) is installed in the version that the project's lock "
        "names",
    )


@lru_cache(maxsize=1)
def simulated_shop(years: int = 1, seed: int = SEED) -> Mapping[str, pa.Table]:
    """Simulate the shop from its first day; a few seconds a year.

    Returns:
        Per name in `FILES`, the rows that jafgen wrote, with every value as text.

    Raises:
        RequestError: jafgen failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", __name__, folder, f"--years={years}", f"--seed={seed}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own module
        if done.returncode != 0:
            raise _shop_simulation(exit_code=done.returncode, stderr=done.stderr)
        return read_shop(Path(folder))


def read_shop(folder: Path) -> Mapping[str, pa.Table]:
    """Read the csv files of a shop, every value as text."""
    return {name: _read(folder / f"raw_{name}.csv") for name in FILES}


def _read(path: Path) -> pa.Table:
    header = path.read_text(encoding="utf-8").partition("\n")[0].strip().split(",")
    as_text = csv.ConvertOptions(column_types=dict.fromkeys(header, pa.string()))
    return csv.read_csv(path, convert_options=as_text)


def main() -> None:
    """Write the shop's csv files into a folder."""
    parser = argparse.ArgumentParser(description="Simulate the Jaffle Shop, reproducibly.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--years", type=int, default=1)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    _simulate(options.folder, options.years, options.seed)


def _simulate(folder: Path, years: int, seed: int) -> None:
    """Run jafgen with every source of its chance seeded; for a process of its own only."""
    import numpy as np  # noqa: PLC0415 - only the simulating process needs these
    from faker import Faker  # noqa: PLC0415
    from jafgen.simulation import Simulation  # noqa: PLC0415

    ids = random.Random(seed)  # noqa: S311 - names for sample data
    uuid.uuid4 = lambda: uuid.UUID(int=ids.getrandbits(128), version=4)  # noqa: TID251
    random.seed(seed)
    np.random.seed(seed)
    Faker.seed(seed)
    simulation = Simulation(years, "raw")
    simulation.run_simulation()
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)  # jafgen writes below the working directory
    simulation.save_results()
    for written in (folder / "jaffle-data").iterdir():
        written.rename(folder / written.name)
    (folder / "jaffle-data").rmdir()


if __name__ == "__main__":
    main()
