"""One step of SQLMesh, as a program of its own environment: it imports nothing of this project.

    python sqlmesh_step.py PROJECT REQUEST

The request is JSON: `{"register": PATH}` makes a table known as the events, `{"plan": {...}}` plans
with these arguments and applies. It ends with one line of JSON: where each model's table is.
"""

from __future__ import annotations

import json
import sys

from sqlmesh import Context  # pyright: ignore[reportMissingImports] - in an environment of its own


def main(project: str, request: str) -> None:
    """Do what is asked, and print where the tables are."""
    asked, context = json.loads(request), Context(paths=[project])
    if "register" in asked:
        _register(context, asked["register"])
        return
    plan = context.plan_builder(None, skip_tests=True, **asked["plan"]).build()
    context.apply(plan)
    sys.stdout.write(json.dumps(_tables(context)) + "\n")


def _register(context: Context, path: str) -> None:
    context.engine_adapter.execute("CREATE DATABASE IF NOT EXISTS raw")
    context.engine_adapter.execute(f"CREATE TABLE raw.ad_events USING delta LOCATION '{path}'")


def _tables(context: Context) -> dict[str, list[str]]:
    """Give, by model, the schema and name of the table that production reads."""
    environment = context.state_reader.get_environment("prod")
    found = {}
    for snapshot in environment.snapshots if environment else ():
        if not snapshot.is_external:
            words = [_unquoted(word) for word in snapshot.table_name(is_deployable=True).split(".")]
            found[".".join(map(_unquoted, snapshot.name.split(".")[-2:]))] = words[-2:]
    return found


def _unquoted(word: str) -> str:
    return word.strip('"`')


if __name__ == "__main__":
    main(*sys.argv[1:3])
