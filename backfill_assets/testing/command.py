"""How a command ended, and what it said."""

from __future__ import annotations

import io
import json
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

from backfill_assets.cli.app import app, call
from backfill_assets.testing.dying import Killed

_PLAN = re.compile(r"\bp[0-9a-f]{9}\b")

KILLED = 137
"""The exit code of a process that was killed, as a shell gives it."""


class UnexpectedEndError(AssertionError):
    """A command ended with another exit code than it should."""

    def __init__(self, ended: Ended, expected: int) -> None:
        self.ended, self.expected = ended, expected
        super().__init__(f"expected exit code {expected}\n{ended}")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it said.

    Attributes:
        words: its arguments.
        code: its exit code; 137 where it was killed.
        out: what it wrote for people or, with ``--json``, for programs.
        err: its progress, questions and errors.
    """

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - any JSON
        """What it wrote on stdout, which has to be JSON alone."""
        return json.loads(self.out)

    @property
    def plan_id(self) -> str:
        """The id of the last plan that it named; empty without one."""
        return ["", *_PLAN.findall(self.out)][-1]

    @property
    def said(self) -> str:
        """All of it, on one line: for looking for words."""
        return " ".join(f"{self.out} {self.err}".split())

    @property
    def transcript(self) -> str:
        """The command and its answer, as a person sees them in a shell; without progress."""
        errors = [line for line in self.err.splitlines() if line.startswith("error:")]
        ends = [f"[exit {self.code}]"] if self.code else []
        lines = (
            f"$ {shlex.join(('backfill', *self.words))}",
            *self.out.splitlines(),
            *errors,
            *ends,
        )
        return "\n".join(lines) + "\n"

    def __str__(self) -> str:
        return f"backfill {' '.join(self.words)} -> {self.code}\n{self.out}\n{self.err}"


def backfill(*words: str) -> Ended:
    """Run `backfill` in this process, and give how it ended, whatever that was."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = call(app, words)
        except Killed:
            code = KILLED
    return Ended(words, code, out.getvalue(), err.getvalue())
