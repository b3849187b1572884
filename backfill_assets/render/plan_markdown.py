"""Write one plan as Markdown, for a pull request, a ticket or a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from backfill_assets.render.plan_sections import (
    AtWork,
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
from backfill_assets.render.plan_words import Naming, count_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from backfill_assets.planning.plan.plan import Plan
    from backfill_assets.render.plan_sections import ModelWork, Section

_RANGES = 20


def plan_markdown(plan: Plan, naming: Naming, around: Iterable[Texts] = ()) -> str:
    """Write a plan, whole: what takes a line, the table of the work, and then the rest under titles.

    Args:
        plan: the plan.
        naming: how cells are named.
        around: what the state says around the plan.
    """
    sections = tuple(plan_sections(plan, naming, _RANGES, around))
    lines = (
        *(line for section in sections if isinstance(section, Title) for line in _title(section)),
        *(
            f"- **{section.label}:** {section.text}"
            for section in sections
            if isinstance(section, Fact)
        ),
        *(line for section in sections if isinstance(section, Work) for line in _table(section)),
        *("", count_line(naming, plan), ""),
        *(line for section in sections for line in _titled(section)),
    )
    return "\n".join(lines) + "\n"


def _title(title: Title) -> Iterator[str]:
    by = f", asked for by {title.asked_by}" if title.asked_by else ""
    yield f"## Plan `{title.plan_id}` for `{title.environment}` ({title.guard}){by}"
    yield ""


def _table(work: Work) -> Iterator[str]:
    yield from ("", "|  | model | cells | which, and why |", "|---|---|---:|---|")
    for model in work.models:
        for cells in (*model.cells, *((model.waiting,) if model.waiting else ())):
            text = cells.text.replace("|", "\\|").replace("\n", " ")
            yield f"| {model.sign} | `{model.model}` | {cells.count:,} | {text} |"
    for removed in work.removed:
        yield f"| {removed.sign} | `{removed.model}` | | {removed.text} |"


def _titled(section: Section) -> Iterator[str]:  # noqa: C901, PLR0911, PLR0912 - one case for each
    match section:
        case Title() | Fact():
            return iter(())
        case Changes():
            return _changes(section)
        case Work():
            return _listed(
                "Details", (line for model in section.models for line in _details(model))
            )
        case LeftAlone(readers):
            return _listed("Left alone", (f"- `{model}`: {because}" for model, because in readers))
        case AtWork(blocks, others):
            title = "Conflicts" if blocks else "In flight"
            return _listed(title, (f"- `{model}` {text}" for model, text in others))
        case Strategies():
            return _listed("Strategy", _ways(section))
        case Contract(expected):
            lines = (
                f"- `{model}`: {'; '.join(rules)} (decided by {who})"
                for model, rules, who in expected
            )
            return _listed("Expected changes", lines)
        case Texts(_, title, texts):
            return _listed(title, (f"- {text}" for text in texts))
        case Stages(stages):
            return _listed("Stages", (f"- `{verb}`: {text}" for verb, text in stages))
        case Signs(signs):
            return _listed("Signs", (", ".join(f"`{sign}` {means}" for sign, means in signs),))
        case _:
            assert_never(section)


def _listed(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield from (f"### {title}", "", *lines, "")


def _changes(changes: Changes) -> Iterator[str]:
    for changed in changes.models:
        yield from (f"### {changed.sign} `{changed.model}`: {changed.category}", "")
        if changed.diff:
            fence = "`" * max(3, _longest_fence(changed.diff) + 1)
            yield from (f"{fence}diff", *changed.diff.splitlines(), fence, "")


def _longest_fence(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)


def _details(model: ModelWork) -> Iterator[str]:
    yield f"- `{model.model}`"
    yield from (f"  - {text}" for text in model.details)
    yield from (f"  - **{text}**" for text in model.warnings)


def _ways(strategies: Strategies) -> Iterator[str]:
    for way, asides, models in strategies.ways:
        names = ", ".join(f"`{model}`" for model in models)
        yield f"- {names}: {'; '.join((way, *asides))}"
