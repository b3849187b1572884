"""Show a plan to a person: coloured on a terminal, plain in a pipe, ASCII where the encoding needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from backfill_assets.cli.output import err, out, say
from backfill_assets.engine.review.around import around_plan
from backfill_assets.render.plan_text import Tone, plan_text
from backfill_assets.render.plan_words import count_line, plain_symbols

if TYPE_CHECKING:
    from rich.console import Console

    from backfill_assets.engine.fill.outstanding import Outstanding
    from backfill_assets.engine.project.asked import Asked
    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.plan_sections import Texts
    from backfill_assets.render.plan_words import Naming

_STYLES = {
    Tone.PLAIN: None,
    Tone.HEAD: "bold",
    Tone.PLUS: "green",
    Tone.MINUS: "red",
    Tone.QUIET: "dim",
    Tone.WARNING: "yellow",
}


def say_nothing_planned(empty: Plan, left: Outstanding) -> None:
    """Say what work remains although the plan is empty."""
    for note in empty.notes:
        say(note, to=err, indent=2)
    if left.is_open:
        say(f"{empty.environment}: nothing to plan; {left.words}.")
    else:
        say(f"{empty.environment}: nothing to do: it runs what is loaded, and nothing is owed.")


def show_plan(
    asked: Asked,
    plan: Plan,
    *,
    after: tuple[str, ...],
    left: str = "",
    whole: bool = False,
    aside: bool = False,
) -> None:
    """Show a plan, then what comes after it, then its count.

    Args:
        asked: the project.
        plan: the plan.
        after: the lines below it: that nothing is written, and the next commands.
        left: the work that is left in the environment before the plan, in words.
        whole: everything; else about what fits a screen.
        aside: on stderr, where stdout is for a program.
    """
    to = err if aside else out
    naming = asked.naming_of(plan)
    print_plan(plan, naming, around_plan(asked, plan), to=to, whole=whole)
    print_end(plan, naming, after, left=left, to=to)


def print_plan(
    plan: Plan, naming: Naming, around: tuple[Texts, ...], *, to: Console, whole: bool
) -> None:
    """Write the text of a plan."""
    for line in plan_text(plan, naming, around, whole=whole):
        say(drawable(line.text, to), to=to, style=_STYLES[line.tone], indent=line.indent)


def print_end(
    plan: Plan, naming: Naming, after: tuple[str, ...], *, left: str = "", to: Console
) -> None:
    """Write the lines after a plan that are not empty, then its count, and the work that is left until it is applied."""
    for text in filter(None, after):
        say(text, to=to)
    say(count_line(naming, plan) + (f" Until then: {left}." if left else ""), to=to)


def drawable(text: str, to: Console) -> str:
    """Write a text so that the console's encoding can carry it."""
    try:
        text.encode(to.encoding)
    except (UnicodeEncodeError, LookupError):
        return plain_symbols(text).encode("ascii", "replace").decode("ascii")
    return text
