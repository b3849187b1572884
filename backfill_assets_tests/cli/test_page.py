"""The page of the command, held against the command."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from backfill_assets.cli.app import GROUPS, INTERRUPTED, VERBS, app
from backfill_assets.cli.exits import CHANGES, MEANS, TELLS_CHANGES, TELLS_WHAT_WAITS, WAITS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from backfill_assets_tests.cli.conftest import Backfill

PAGE = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def commands(name: str = "backfill", command: Any = None) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    """Every command that does something, by its whole name."""
    found: Any = command or typer.main.get_command(app)
    inner = getattr(found, "commands", {})
    if not inner or (command and found.invoke_without_command):
        yield name, found
    for verb, one in inner.items():
        yield from commands(f"{name} {verb}", one)


def test_the_one_table_of_verbs_is_what_their_help_says():
    table = re.findall(r"^\| `(backfill [a-z -]+)` \| (.+) \|$", PAGE, re.MULTILINE)

    assert table == [
        (name, " ".join(command.help.split("\n\n")[0].split())) for name, command in commands()
    ]


def test_every_verb_shows_an_example_and_takes_json():
    for name, command in commands():
        assert re.search(f"Example: .*{name}", command.help), name
        assert "--json" in {option for param in command.params for option in param.opts}, name


def test_the_table_of_exit_codes_is_that_of_the_command():
    table = re.findall(r"^\| (\d+) \| (.+) \| (.+) \|$", PAGE, re.MULTILINE)

    assert {int(code): means for code, means, _ in table}.keys() == MEANS.keys()
    telling = {CHANGES: [*TELLS_CHANGES], WAITS: [*TELLS_WHAT_WAITS]}
    for code, means, verbs in table:
        named = re.findall(r"`([a-z-]+)`", verbs)
        assert MEANS[int(code)].startswith(means.split(";")[0])
        assert named == telling.get(int(code), [])
    assert INTERRUPTED in MEANS


def test_only_the_verbs_that_tell_what_waits_say_so_in_their_help():
    said = {name.split()[1] for name, one in commands() if re.search(r"\b3 when\b", one.help)}

    assert said == {*TELLS_WHAT_WAITS}


def test_only_the_verbs_that_tell_changes_say_so_in_their_help():
    said = {name.split()[1] for name, one in commands() if re.search(r"\b2 when\b", one.help)}

    assert said == {*TELLS_CHANGES}
    assert said <= {*VERBS}


def test_the_help_fits_80_columns_and_has_every_verb_below_a_heading(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "80")

    lines = backfill("--help").lines
    headings = [line.rstrip(":") for line in lines if re.fullmatch(r"[A-Z][a-z ]+:", line)]
    verbs = [found[1] for line in lines if (found := re.match(r"  ([a-z-]+)  +\S", line))]

    assert max(map(len, lines)) <= 80
    assert headings == ["Options", *GROUPS]
    assert [verb for verb in verbs if verb in VERBS] == [*VERBS]


def test_the_release_is_said(backfill: Backfill):
    assert backfill("--version").out == f"backfill {version('backfill-assets')}\n"
