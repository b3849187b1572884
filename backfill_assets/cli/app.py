"""The `backfill` command: one verb, one file.

It ends with 0 when all went well; with 1 when a batch failed, cells still lack, a blocking audit
failed, or the request is impossible; with 3 when something waits for a plan, a person or another run, or a
source was not looked at; with 130 when it was interrupted. `plan` and `diff` end with 2
when there is something to change, or a difference: see `exits`.
"""

from __future__ import annotations

import errno
import os
import sys
from importlib.metadata import version as version_of
from typing import TYPE_CHECKING, Annotated

import typer
from typer.exceptions import TyperException

from backfill_assets.cli.exits import INTERRUPTED
from backfill_assets.cli.lazy_commands import lazily
from backfill_assets.cli.output import err, say
from backfill_assets.errors import BackfillAssetsError, RequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FULL = (errno.ENOSPC, errno.EDQUOT)
"""What the system says of a disk, or of a person's share of it, that has no room left."""

GROUPS = {
    "Set up": {
        "init": "init:init",
        "setup": "setup:setup",
    },
    "Look": {
        "status": "status:status",
        "why": "why:why",
        "why-not": "why_not:why_not",
        "batches": "batches:batches",
        "history": "history:history",
        "explain": "explain:explain",
        "replay": "replay:replay",
        "map": "map:map",
        "resolve": "resolve:resolve",
        "views": "views:views",
        "iceberg": "iceberg:app",
        "audit": "audit:audit",
        "audits": "audits:audits",
        "metrics": "metrics:metrics",
    },
    "Fill": {
        "run": "run:run",
        "limit": "limit:app",
        "report": "report:report",
    },
    "Change history": {
        "plan": "plan:plan",
        "show": "show:show",
        "checklist": "checklist:checklist",
        "apply": "apply:apply",
        "pause": "pause:pause",
        "resume": "resume:resume",
        "stop": "stop:stop",
        "diff": "diff:diff",
        "approve": "approve:approve",
        "approvals": "approvals:approvals",
        "acknowledge": "acknowledge:acknowledge",
        "accept": "accept:accept",
        "notices": "notices:notices",
        "results": "results:app",
        "hold": "hold:hold",
        "release": "release:release",
        "promote": "promote:promote",
        "aftercare": "aftercare:aftercare",
        "abandon": "abandon:abandon",
        "rollback": "rollback:rollback",
        "undo": "undo:undo",
        "evidence": "evidence:app",
        "adopt": "adopt:adopt",
    },
    "Clean up": {
        "envs": "envs:app",
        "gc": "gc:gc",
        "state": "state:app",
    },
}
"""Every verb by what it is for, in the order of ``--help``: its module in `cli`, and the function or app in it."""

VERBS = {verb: place for verbs in GROUPS.values() for verb, place in verbs.items()}
"""Every verb, and where it is."""

app = typer.Typer(
    name="backfill",
    cls=lazily(GROUPS),
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Fill, check and explain the history of time-partitioned models.",
    epilog="Every command has --help with examples, and --json, which writes only JSON to stdout.",
)


def _say_version(is_set: bool) -> None:
    if is_set:
        say(f"backfill {version_of('backfill-assets')}")
        raise typer.Exit


@app.callback()
def backfill(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say the release."),
    ] = False,
) -> None:
    """Declare the options before the verb; with a callback typer expects several verbs."""


def call(command: Callable[..., object], arguments: Sequence[str], name: str = "backfill") -> int:
    """Run a command and give its exit code; a user's error is reported in one line.

    Args:
        command: an application of typer's.
        arguments: those of the command line.
        name: of the command, for its help.
    """
    try:
        _refuse_other_encodings(arguments)
        ended = command(args=list(arguments), prog_name=name, standalone_mode=False)
        sys.stdout.flush()  # what can't be written is told here, not when Python ends
    except BackfillAssetsError as error:
        return _told(_with_the_samples(error), error.exit_code)
    except TyperException as error:
        path = getattr(getattr(error, "ctx", None), "command_path", name)
        return _told(f"{error.format_message()} (see `{path} --help`)", 1)
    except OSError as error:
        return _unwritten(error)
    code = ended if isinstance(ended, int) else 0
    if code == INTERRUPTED:
        return _told(
            "committed cells are kept; run the same command again to build the rest",
            code,
            "stopped",
        )
    return code


def _unwritten(error: OSError) -> int:
    """End a command that can't write any more; raise every other error of the system."""
    if not isinstance(error, BrokenPipeError) and error.errno not in _FULL:
        raise error
    # Python would report that again when it ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):  # the reader has gone (`backfill status | head`)
        return 1
    full = f"{error.strerror} where this command writes, its output included"
    return _told(f"{full}; free some space, and run the same command again", 1)


def _refuse_other_encodings(arguments: Sequence[str]) -> None:
    """Refuse bytes that are no text: no plan or history could hold them.

    Raises:
        RequestError: there are some.
    """
    for argument in arguments:
        if not argument.isascii() and argument.encode(errors="ignore").decode() != argument:
            raise RequestError(
                found=f"argument {argument!a} is no text in UTF-8",
                do="set the terminal, or the locale, to UTF-8",
            )


def _with_the_samples(error: BackfillAssetsError) -> str:
    """Say also that no catalog is named, where a model is not known; what says so is imported only here."""
    from backfill_assets.models.graph import UnknownModelError  # noqa: PLC0415
    from backfill_assets.settings import read_settings  # noqa: PLC0415

    text = str(error)
    if not isinstance(error, UnknownModelError) or "catalog" in read_settings().model_fields_set:
        return text
    ended = text if text.endswith("?") else f"{text}."
    return f"{ended} BACKFILL_CATALOG is not set, so these are the sample models: name your catalog in it"


def _told(message: str, code: int, sort: str = "error") -> int:
    say(" ".join(f"{sort}: {message}".split()), to=err, style="red", indent=2)
    return code


def main() -> None:
    """Run `backfill` for the process."""
    sys.exit(call(app, sys.argv[1:]))


if __name__ == "__main__":
    main()
