"""`python -m backfill_assets_tests.vectors [PATH...]`: files or folders of cases, judged."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from backfill_assets_tests.vectors.answers import NotSupportedYet
from backfill_assets_tests.vectors.runner import Failure, cases_of, default_files, files_of, judge


def main(arguments: list[str]) -> int:
    """Judge the cases; 1 if one fails, 2 if a path leads nowhere."""
    files = files_of(map(Path, arguments)) if arguments else default_files()
    try:
        cases = [(file.name, case) for file in files for case in cases_of(file)]
    except (OSError, ValueError) as error:
        print(f"A file of cases can't be read: {error}")  # noqa: T201
        return 2
    passed = failed = 0
    skipped: Counter[tuple[str, str]] = Counter()
    for file, case in cases:
        try:
            failure = judge(case)
        except NotSupportedYet as what:
            skipped[file, str(what)] += 1
            continue
        except Exception as error:  # noqa: BLE001 - a case that we choke on is a failing case
            failure = Failure(
                str(case.get("id")), case.get("name", ""), case.get("expected"), repr(error)
            )
        passed += failure is None
        failed += failure is not None
        if failure is not None:
            print(failure)  # noqa: T201 - this is a command
    for (name, what), count in sorted(skipped.items()):
        print(f"skipped, built by a later stage: {name} {count} ({what})")  # noqa: T201
    tail = f", {skipped.total()} skipped" if skipped else ""
    print(f"{passed} passed, {failed} failed{tail}")  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
