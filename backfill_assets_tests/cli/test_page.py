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
from backfill_assets.pipelines.catalog import MODELS, SOURCES

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
    for verb, subcommand in inner.items():
        yield from commands(f"{name} {verb}", subcommand)


def test_the_one_table_of_verbs_is_what_their_help_says():
    table = re.findall(r"^\| `(backfill [a-z -]+)` \| (.+) \|$", PAGE, re.MULTILINE)

    assert table == [
        (name, " ".join(command.help.split("\n\n")[0].split())) for name, command in commands()
    ]


def test_every_verb_shows_an_example_and_takes_json():
    for name, command in commands():
        assert re.search(f"Example: .*{name}", command.help), name
        assert "--json" in {option for param in command.params for option in param.opts}, name


def examples() -> Iterator[tuple[str, str]]:
    """Every example in the help of a command, beside the command's name."""
    for name, command in commands():
        for example in re.findall("(?m)^Example: (.*)$", command.help):
            yield name, example


def test_every_example_names_models_and_sources_of_the_sample_catalog():
    known = {declared.name for declared in (*MODELS, *SOURCES)}
    subjects = "|".join({name.partition(".")[0] for name in known})

    named = {
        (example, name)
        for _, example in examples()
        for name in re.findall(rf"\b(?:{subjects})\.[a-z_]+\b", example)
    }

    assert len(named) > 20
    assert {(example, name) for example, name in named if name not in known} == set()


@pytest.mark.parametrize("columns", ["60", "80"])
def test_examples_in_a_help_are_whole_lines_that_can_be_pasted(
    backfill: Backfill, monkeypatch: pytest.MonkeyPatch, columns: str
):
    monkeypatch.setenv("COLUMNS", columns)

    for name, example in examples():
        lines = backfill(*name.split()[1:], "--help").lines
        assert f"  Example: {example}" in lines


@pytest.mark.parametrize("group", ["evidence", "state", "results", "iceberg"])
def test_a_group_alone_shows_its_help(backfill: Backfill, group: str):
    alone, asked = backfill(group), backfill(group, "--help")

    assert (alone.code, alone.err) == (0, "")
    assert alone.out == asked.out


def codes() -> dict[int, list[str]]:
    """The exit codes of the page, and the verbs that it names for each; none where every verb has it."""
    table = re.findall(r"^\| (\d+) \| .+ \| (.+) \|$", PAGE, re.MULTILINE)
    return {int(code): re.findall(r"`([a-z-]+)`", verbs) for code, verbs in table}


def test_the_page_has_every_exit_code():
    assert {*codes()} == {DONE, FAILED, CHANGES, WAITS, INTERRUPTED}


@pytest.mark.parametrize("code", [CHANGES, WAITS])
def test_the_verbs_that_the_page_names_for_an_exit_code_say_so_in_their_help(code: int):
    said = {
        name.split()[1]
        for name, command in commands()
        if re.search(rf"\b{code} when\b", command.help)
    }

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
