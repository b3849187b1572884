"""Write one plan as text for the person who decides on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, assert_never

from backfill_assets.intervals.text import counted, first_of
from backfill_assets.render.plan_sections import (
    AtWork,
    Cells,
    Changes,
    Contract,
    Fact,
    LeftAlone,
    Signs,
    Stages,
    Strategies,
    Texts,
    Title,
    Work,
    plan_sections,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.plan_sections import ModelWork, Section
    from backfill_assets.render.plan_words import Naming

_CHANGED, _DIFFS, _DIFF_LINES = 6, 3, 12
_MODELS, _PIECES, _OTHERS, _STRATEGIES = 7, 2, 3, 2
_RANGES, _ALL_RANGES = 3, 50
_FILES = ("--- ", "+++ ")
"""Of a unified diff: the two lines that name what was compared."""
_INDENT = 4
_ASIDE = 8
_LABEL = 10


class Tone(StrEnum):
    """The role of a line, by which it is coloured."""

    PLAIN = "plain"
    HEAD = "head"
    PLUS = "plus"
    MINUS = "minus"
    QUIET = "quiet"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the text.

    Attributes:
        text: itself, its first indent included.
        tone: its role.
        indent: how far the lines after a break are indented.
    """

    text: str
    tone: Tone = Tone.PLAIN
    indent: int = _INDENT


def plan_text(
    plan: Plan, naming: Naming, around: Iterable[Texts] = (), *, whole: bool = False
) -> tuple[Line, ...]:
    """Write a plan without the lines on the next commands.

    Args:
        plan: the plan.
        naming: how cells are named.
        around: what the state says around the plan.
        whole: everything; else about what fits a screen.
    """
    sections = plan_sections(plan, naming, _ALL_RANGES if whole else _RANGES, around)
    return tuple(line for section in sections for line in _section(section, whole=whole))


def _section(  # noqa: C901, PLR0911, PLR0912 - one case for each section
    section: Section, *, whole: bool
) -> Iterator[Line]:
    match section:
        case Title():
            return _title(section)
        case Fact(label, text):
            return iter((_labelled(label, text),))
        case Changes():
            return _changes(section, whole=whole)
        case Work():
            return _work(section, whole=whole)
        case LeftAlone():
            return _left_alone(section, whole=whole)
        case AtWork():
            return _at_work(section, whole=whole)
        case Strategies():
            return _strategies(section, whole=whole)
        case Contract():
            return _contract(section, whole=whole)
        case Texts():
            return _texts(section)
        case Stages():
            return _stages(section) if whole else iter(())
        case Signs():
            return _signs(section) if whole else iter(())
        case _:
            assert_never(section)


def _labelled(label: str, text: str, tone: Tone = Tone.PLAIN) -> Line:
    start = f"{label:<{_LABEL}}" if len(label) < _LABEL else f"{label}: "
    return Line(f"{start}{text}", tone, _LABEL)


def _title(title: Title) -> Iterator[Line]:
    by = f", asked for by {title.asked_by}" if title.asked_by else ""
    yield Line(f"Plan {title.plan_id} for {title.environment} ({title.guard}){by}", Tone.HEAD)


def _changes(changes: Changes, *, whole: bool) -> Iterator[Line]:
    shown = changes.models if whole else changes.models[:_CHANGED]
    long = sum(1 for changed in shown if changed.diff and not changed.added)
    room = _DIFF_LINES // max(min(long, _DIFFS), 1)
    for at, changed in enumerate(shown):
        yield Line(f"{changed.sign} {changed.model}: {changed.category}", Tone.HEAD)
        lines = [line for line in changed.diff.splitlines() if not line.startswith(_FILES)]
        if whole or not changed.added:
            yield from _diff(lines, len(lines) if whole else room * (at < _DIFFS))
    yield from _more(len(changes.models) - len(shown), "changed model")


def _diff(lines: list[str], room: int) -> Iterator[Line]:
    for line in lines[:room]:
        yield Line(f"    {line}", _tone_of_diff(line), _INDENT * 2)
    yield from _more(len(lines) - room, "line")


def _tone_of_diff(line: str) -> Tone:
    if line.startswith("+"):
        return Tone.PLUS
    return Tone.MINUS if line.startswith("-") else Tone.QUIET


def _work(work: Work, *, whole: bool) -> Iterator[Line]:
    yield Line("Work", Tone.HEAD)
    shown = work.models if whole else work.models[:_MODELS]
    width = max((len(model.model) for model in shown), default=0)
    for model in shown:
        yield from _model(model, width, whole=whole)
    yield from _more(len(work.models) - len(shown), "model")
    for removed in work.removed:
        yield Line(f"  {removed.sign} {removed.model}: {removed.text}", Tone.MINUS)


def _model(model: ModelWork, width: int, *, whole: bool) -> Iterator[Line]:
    first = f"  {model.sign} {model.model:<{width}}  "
    shown = model.cells if whole else model.cells[:_PIECES]
    for at, cells in enumerate(shown):
        start = " " * len(first) if at else first
        yield _cells(start, cells, Tone.PLAIN if cells.certain else Tone.QUIET)
    hidden = model.cells[len(shown) :]
    if hidden:
        text = f"for {counted(len(hidden), 'other reason')}"
        yield _cells(
            " " * len(first), Cells(sum(cells.count for cells in hidden), text), Tone.QUIET
        )
    if model.waiting:
        yield _cells(" " * len(first), model.waiting, Tone.WARNING)
    for detail in model.details if whole else ():
        yield Line(f"{' ' * _ASIDE}{detail}", Tone.QUIET, _ASIDE + _INDENT)
    for warning in model.warnings:
        yield Line(f"{' ' * _ASIDE}{warning}", Tone.WARNING, _ASIDE)


def _cells(start: str, cells: Cells, tone: Tone) -> Line:
    return Line(f"{start}{cells.count:>6,}  {cells.text}", tone, len(start) + 8)


def _left_alone(left_alone: LeftAlone, *, whole: bool) -> Iterator[Line]:
    yield Line("Left alone", Tone.HEAD)
    shown = left_alone.readers if whole else left_alone.readers[:_OTHERS]
    width = max(len(model) for model, _ in shown)
    for model, because in shown:
        yield Line(f"    {model:<{width}}  {because}", indent=width + 6)
    yield from _more(len(left_alone.readers) - len(shown), "reader")


def _at_work(at_work: AtWork, *, whole: bool) -> Iterator[Line]:
    shown = at_work.others if whole else at_work.others[:_OTHERS]
    label, tone = ("Conflict", Tone.MINUS) if at_work.blocks else ("In flight", Tone.WARNING)
    for model, text in shown:
        yield _labelled(label, f"{model} {text}", tone)
    hidden = len(at_work.others) - len(shown)
    yield from _more(hidden, "other plan or run", "other plans or runs")


def _strategies(strategies: Strategies, *, whole: bool) -> Iterator[Line]:
    ways = strategies.ways if whole else strategies.ways[:_STRATEGIES]
    for way, asides, models in ways:
        listed = first_of(models, len(models) if whole else _OTHERS)
        yield _labelled("Strategy", f"{way}: {listed}")
        yield from (_labelled("", aside, Tone.QUIET) for aside in asides)
    yield from _more(len(strategies.ways) - len(ways), "strategy", "strategies")


def _contract(contract: Contract, *, whole: bool) -> Iterator[Line]:
    shown = contract.expected if whole else contract.expected[:_OTHERS]
    for model, rules, who in shown:
        yield _labelled("Expected", f"{model}: {'; '.join(rules)} (decided by {who})")
    yield from _more(len(contract.expected) - len(shown), "model", "models")


def _texts(texts: Texts) -> Iterator[Line]:
    tone = Tone.WARNING if texts.warn else Tone.PLAIN
    return (_labelled(texts.label, text, tone) for text in texts.texts)


def _stages(stages: Stages) -> Iterator[Line]:
    before = ""
    for verb, text in stages.stages:
        yield _labelled("" if verb == before else verb.capitalize(), text, Tone.QUIET)
        before = verb


def _signs(signs: Signs) -> Iterator[Line]:
    yield _labelled("Signs", ", ".join(f"{sign} {means}" for sign, means in signs.signs))


def _more(hidden: int, one: str, many: str | None = None) -> Iterator[Line]:
    if hidden > 0:
        yield Line(f"    and {counted(hidden, one, many)} more: -v shows them", Tone.QUIET)
