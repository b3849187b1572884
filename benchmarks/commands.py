"""Our own command, as a person would start it, and where each benchmark works."""

from __future__ import annotations

import sys
from pathlib import Path

BACKFILL = (sys.executable, "-m", "backfill_assets.cli.app")
RESULTS = (
    Path(__file__).parents[1] / ".benchmarks"
)  # outside of the package: a package counts as a whole
