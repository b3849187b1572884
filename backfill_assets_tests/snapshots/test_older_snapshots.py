"""Snapshots that older releases stored load, bind and run as they did.

`older/` holds what two of them wrote: `bundles.json` one that ran SQL as sqlglot writes it and cut
functions out of their modules, `modules.json` the first one that stored whole modules. Beside each
definition stands what that release bound, or what its function gave.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlglot

from backfill_assets.models.python.function_query import FunctionQuery, ModuleQuery
from backfill_assets.models.sql.query import SqlQuery, parameters_of
from backfill_assets.snapshots.snapshot import stored_model
from backfill_assets.state.store import Store
from backfill_assets_tests.state.building import Clock

OLDER = {
    f"{file.stem} {older['definition']['v']['name']}": older
    for file in sorted(Path(__file__).parent.joinpath("older").glob("*.json"))
    for older in json.loads(file.read_text(encoding="utf-8"))
}
AT, TO = datetime(2024, 1, 2, tzinfo=UTC), datetime(2024, 1, 4, tzinfo=UTC)
VIEWS = {"shop.orders": "_up__orders", "shop.customers": "_up__customers"}


def text_of(definition: object) -> str:
    """A definition as the codec of every release wrote it."""
    return json.dumps(definition, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("name", [name for name, older in OLDER.items() if "gives" in older])
def test_a_stored_function_of_an_older_release_gives_what_it_gave(name: str):
    stored = OLDER[name]
    query = stored_model(text_of(stored["definition"])).logic

    assert isinstance(query, FunctionQuery if name.startswith("bundles") else ModuleQuery)
    inputs: Any = {"web.hits": [("a", 1), ("b", 2), ("c", 3)]}
    assert query.load()(inputs, None) == stored["gives"]


@pytest.mark.parametrize("name", OLDER)
def test_a_snapshot_of_an_older_release_goes_through_the_state_letter_by_letter(
    name: str, tmp_path: Path
):
    text = text_of(OLDER[name]["definition"])
    with Store.open(f"sqlite:///{tmp_path / 'state.db'}", clock=Clock()) as store:
        store.snapshots.save_snapshot(
            fingerprint_id="p", model="m", version="v", definition=text, logic="", upstream="", metadata=""
        )  # fmt: skip
        assert store.snapshots.get("p").definition == text
        assert stored_model(store.snapshots.get("p").definition) == stored_model(text)


@pytest.mark.parametrize("name", [name for name, older in OLDER.items() if "bound" in older])
def test_stored_sql_of_an_older_release_is_bound_to_the_query_that_it_was_bound_to(name: str):
    stored = OLDER[name]
    query = stored_model(text_of(stored["definition"])).logic
    assert isinstance(query, SqlQuery)
    bound = query.bind(parameters_of(AT, TO, AT, TO), VIEWS)

    assert parsed(bound) == parsed(stored["bound"])


def parsed(sql: str) -> str:
    """One spelling of a query; a view in brackets is the view."""
    return sqlglot.parse_one(re.sub(r"\((`_up__\w+` AS `\w+`)\)(?: (o)\b)?", _view, sql), dialect="spark").sql(
        dialect="spark", comments=False
    )  # fmt: skip


def _view(found: re.Match[str]) -> str:
    return f"{found[1].split()[0]} AS {found[2]}" if found[2] else found[1]
