"""A command that imports the module of a verb only when it is called, so that every verb starts fast."""

from __future__ import annotations

import ast
import gc
import inspect
import pkgutil
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_PACKAGE = "backfill_assets.cli.verbs"


@contextmanager
def kept_for_good() -> Iterator[None]:
    """Import what lives as long as the process, and spare Python the search for garbage in it.

    The search takes a fifth of the CPU time of a command that starts no Spark.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class Helping(TyperGroup):
    """A group that shows its help when no command is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own
        """Read the arguments; none at all asks for the help, unless the group does something by itself."""
        return super().parse_args(ctx, args or ([] if self.invoke_without_command else ["--help"]))


class Verbs(Mapping[str, Any]):
    """Commands by the name of their verb, each imported when it is called.

    Args:
        places: per verb its module in `cli.verbs` and the name there, ``module:function`` or
            ``module:app``.
    """

    def __init__(self, places: Mapping[str, str]) -> None:
        self._places = places

    def __getitem__(self, verb: str) -> Any:  # noqa: ANN401 - a command of typer's
        with kept_for_good():
            command = pkgutil.resolve_name(f"{_PACKAGE}.{self._places[verb]}")
        made = typer.main.get_command(
            command if isinstance(command, typer.Typer) else _alone(command)
        )
        _keep_examples_whole(made)
        return made

    def __contains__(self, verb: object) -> bool:
        return verb in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def says(self, verb: str) -> str:
        """Read the first line of a verb's docstring without importing its module."""
        module = self._places[verb].partition(":")[0]
        spec = find_spec(f"{_PACKAGE}.{module}")
        tree = ast.parse(Path(spec.origin if spec and spec.origin else "").read_bytes())
        own = (
            statement
            for statement in tree.body
            if isinstance(statement, ast.FunctionDef) and statement.name == module
        )
        summary = inspect.cleandoc(ast.get_docstring(next(own)) or "").partition("\n\n")[0]
        return " ".join(summary.split())


def lazily(groups: Mapping[str, Mapping[str, str]]) -> type[TyperGroup]:
    """Make a typer group from tables of verbs, each under a heading of its help."""
    places = {verb: place for verbs in groups.values() for verb, place in verbs.items()}

    class Lazily(Helping):
        """A group that imports a verb when it is called."""

        def __init__(self, **given: Any) -> None:  # noqa: ANN401 - typer's own
            super().__init__(**given)
            self.verbs = Verbs(places)
            self.commands = cast("MutableMapping[str, Any]", self.verbs)

        def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401 - typer's own
            del ctx
            return list(self.verbs)

        def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
            """Write the tables of verbs without importing one, as far as they are known."""
            names = set(self.list_commands(ctx))
            for heading, verbs in groups.items():
                rows = [(verb, self.verbs.says(verb)) for verb in verbs if verb in names]
                with formatter.section(heading):
                    formatter.write_dl(rows, col_max=max(map(len, names)) + 2)

    return Lazily


def _keep_examples_whole(command: Any) -> None:  # noqa: ANN401 - a command of typer's
    """Mark the examples in a help as text that is not wrapped, so that they can be pasted."""
    command.help = re.sub("(?m)^Example:", "\b\nExample:", command.help or "")
    for inner in getattr(command, "commands", {}).values():
        _keep_examples_whole(inner)


def _alone(function: Any) -> typer.Typer:  # noqa: ANN401 - any function that typer reads
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command()(function)
    return app
