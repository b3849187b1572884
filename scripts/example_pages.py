"""Run examples and show their output on their pages: `python scripts/example_pages.py s06 s04`; all unless named."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
_SHOWN = re.compile(r"```text\n.*?```", re.DOTALL)

_FOLDER = re.compile(r"/\S*?/(?=data/)")  # of the project, which lay in a temporary folder


def main(names: list[str]) -> None:
    """Write the output of each example between the marks of its page."""
    for name in names or ["s"]:
        for folder in sorted(EXAMPLES.glob(f"{name}*/")):
            if not (folder / "run.py").exists():
                continue
            done = subprocess.run(
                [sys.executable, str(folder / "run.py")], check=True, capture_output=True, text=True
            )
            page = folder / "README.md"
            output = _FOLDER.sub("", done.stdout.strip())
            shown = f"```text\n{output}\n```"
            page.write_text(_SHOWN.sub(lambda _, shown=shown: shown, page.read_text(), count=1))
            print(f"{page}: written")


if __name__ == "__main__":
    main(sys.argv[1:])
