"""The page of the command, held against the command."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer

from backfill_assets.cli.app import GROUPS, VERBS, app
from backfill_assets.cli.exits import CHANGES, DONE, FAILED, INTERRUPTED, WAITS

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


def codes() -> dict[int, list[str]]:
    """The exit codes of the page, and the verbs that it names for each; none where every verb has it."""
    table = re.findall(r"^\| (\d+) \| .+ \| (.+) \|$", PAGE, re.MULTILINE)
    return {int(code): re.findall(r"`([a-z-]+)`", verbs) for code, verbs in table}


def test_the_page_has_every_exit_code():
    assert {*codes()} == {DONE, FAILED, CHANGES, WAITS, INTERRUPTED}


@pytest.mark.parametrize("code", [CHANGES, WAITS])
def test_the_verbs_that_the_page_names_for_an_exit_code_say_so_in_their_help(code: int):
    said = {name.split()[1] for name, one in commands() if re.search(rf"\b{code} when\b", one.help)}

    assert said == {*codes()[code]}
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
