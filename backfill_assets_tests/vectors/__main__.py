"""`python -m backfill_assets_tests.vectors [PATH...]`: files or folders of cases, judged."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from backfill_assets_tests.vectors.answers import NotSupportedYet
from backfill_assets_tests.vectors.runner import Failure, cases_of, default_files, files_of, judge


def main(arguments: list[str]) -> int:
    """Judge the cases; 1 if one fails."""
    files = files_of(map(Path, arguments)) if arguments else default_files()
    passed = failed = 0
    skipped: Counter[str] = Counter()
    for file in files:
        for case in cases_of(file):
            try:
                failure = judge(case)
            except NotSupportedYet:
                skipped[file.name] += 1
                continue
            except Exception as error:  # noqa: BLE001 - a case that we choke on is a failing case
                failure = Failure(case["id"], case.get("name", ""), case["expected"], repr(error))
            passed += failure is None
            failed += failure is not None
            if failure is not None:
                print(failure)  # noqa: T201 - this is a command
    if skipped:
        where = ", ".join(f"{name} {count}" for name, count in sorted(skipped.items()))
        print(f"skipped, built by a later stage: {where}")  # noqa: T201
    tail = f", {skipped.total()} skipped" if skipped else ""
    print(f"{passed} passed, {failed} failed{tail}")  # noqa: T201
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
