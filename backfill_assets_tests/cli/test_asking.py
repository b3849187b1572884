from __future__ import annotations

import io
import sys

import pytest

from backfill_assets.cli.asking import confirm
from backfill_assets.errors import RequestError


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_where_nobody_can_be_asked_the_effect_and_the_way_out_are_named(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(sys, "stdin", io.StringIO())

    with pytest.raises(RequestError, match=r"promote plan p1, and there is no terminal.*--yes"):
        confirm("promote plan p1", yes=False)


@pytest.mark.parametrize("answer", ["n\n", "\n"])
def test_only_a_yes_goes_on(monkeypatch: pytest.MonkeyPatch, answer: str):
    monkeypatch.setattr(sys, "stdin", Terminal(answer))

    with pytest.raises(RequestError, match="not confirmed: nothing was written"):
        confirm("promote plan p1", yes=False)


def test_a_yes_goes_on_and_is_asked_for_on_stderr(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))

    confirm("promote plan p1", yes=False)

    said = capsys.readouterr()
    assert "This will promote plan p1. Continue?" in said.err
    assert said.out == ""


def test_a_script_that_says_yes_reads_what_it_said_yes_to(capsys: pytest.CaptureFixture[str]):
    confirm("promote plan p1", yes=True)

    assert "promote plan p1" in capsys.readouterr().err
