"""Play a story of commands in an empty folder and write what a person sees: `python scripts/record.py STORY`.

A story is a text: a line that begins with `#` is told, any other paragraph is a command of the shell, run in the folder
that the command before it was in. Each is written with what it printed, its exit code unless 0, and its seconds. The
transcript goes to stdout. Words of one machine, such as the folder, are left out. The story ends with 1 where a command did not
end as the story says: with 0, or with the code in a line `# exit N` before it. `PLAN` and `BATCH` stand for the last
plan and batch that an output named.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

_NAMED = {
    "PLAN": re.compile(r"\bp[0-9a-f]{9}\b"),
    "BATCH": re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8}\b"),
}
_EXIT = re.compile(r"# exit (\d+)")


def main(story: Path) -> int:
    """Play a story; return how it ended."""
    wrong, last = 0, {}
    with tempfile.TemporaryDirectory() as scratch:
        folder, root = Path(scratch).resolve(), str(Path(scratch).resolve())
        for paragraph in story.read_text().strip().split("\n\n"):
            told = [line for line in paragraph.splitlines() if line.startswith("#")]
            command = "\n".join(line for line in paragraph.splitlines() if line not in told)
            for line in told:
                if not _EXIT.fullmatch(line):
                    print(line)
            if not command:
                print()
                continue
            expected = next((int(named[1]) for line in told if (named := _EXIT.fullmatch(line))), 0)
            for word, name in last.items():
                command = command.replace(word, name)
            began = time.monotonic()
            code, output, folder = played(command, folder)
            seconds = time.monotonic() - began
            for number, line in enumerate(command.splitlines()):
                print(f"{'$' if number == 0 else '>'} {line}")
            for place, word in (
                (root, ""),
                (os.environ.get("BACKFILL_JARS_DIR", root), ".spark-jars"),
            ):
                output = output.replace(place, word)
            print(output.rstrip())
            print(f"[{f'exit {code}, ' if code else ''}{seconds:.1f} s]\n", flush=True)
            last |= {
                word: names[-1] for word, name in _NAMED.items() if (names := name.findall(output))
            }
            wrong += code != expected
    return int(wrong > 0)


def played(command: str, folder: Path) -> tuple[int, str, Path]:
    """Run a command in a folder; give its exit code, what it printed, and the folder that it ended in."""
    with tempfile.NamedTemporaryFile("r") as where:
        script = f"{command}\ncode=$?\npwd > {where.name}\nexit $code\n"
        done = subprocess.run(
            ["bash", "-c", script],
            check=False,
            cwd=folder,
            env={**os.environ, "COLUMNS": "120", "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout, Path(where.read().strip() or folder)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
