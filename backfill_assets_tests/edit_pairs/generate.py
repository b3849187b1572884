"""Pairs of queries, one of which a person makes of the other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PLACE = re.compile(r"\[\[(.*?)\]\](?!\])", re.DOTALL)
_WORDS = re.compile(
    r"\b(SELECT|FROM|WHERE|GROUP BY|ORDER BY|JOIN|ON|UNION|ALL|AS|AND|OR|WITH|LIMIT|OVER|CASE|END)\b"
)
_GROUP = re.compile(r"-- (\w+):")
_SEED = 11


@dataclass(frozen=True, slots=True)
class Pair:
    """One edit.

    Attributes:
        group: the clause that it is about.
        old: the query before.
        new: the query after.
    """

    group: str
    old: str
    new: str


def templates() -> dict[str, list[str]]:
    """Read the templates, by the clause that they are about."""
    found: dict[str, list[str]] = {}
    group = ""
    for line in Path(__file__).with_name("templates.sql").read_text(encoding="utf-8").splitlines():
        heading = _GROUP.fullmatch(line)
        if heading:
            group = heading.group(1)
        elif line and not line.startswith("--"):
            found.setdefault(group, []).append(line)
    return found


def pairs() -> list[Pair]:
    """Give every edit, each once, always in the same order."""
    found = [
        pair for group, texts in templates().items() for text in texts for pair in _of(group, text)
    ]
    return list(dict.fromkeys(found))


def sample(size: int) -> list[Pair]:
    """Give some edits of every group."""
    random, every = Random(_SEED), pairs()  # noqa: S311 - no secret
    groups = list(templates())
    by_group = {group: [pair for pair in every if pair.group == group] for group in groups}
    each = -(-size // len(groups))
    return [pair for group in groups for pair in random.sample(by_group[group], each)]


def _of(group: str, template: str) -> Iterator[Pair]:
    places = [_texts(place) for place in _PLACE.findall(template)]
    plain = tuple(0 for _ in places)
    base = _filled(template, places, plain)
    for edited in _edits(places, Random(template)):  # noqa: S311 - no secret
        other = _filled(template, places, edited)
        yield Pair(group, base, other)
        yield Pair(group, other, base)
    yield Pair(group, base, _rewritten(base))


def _edits(places: list[list[str]], random: Random) -> Iterator[tuple[int, ...]]:
    """One place edited, each way; then two places at once, some ways."""
    for number, texts in enumerate(places):
        for choice in range(1, len(texts)):
            yield tuple(choice if index == number else 0 for index in range(len(places)))
    both = [
        tuple({first: a, second: b}.get(index, 0) for index in range(len(places)))
        for first, second in combinations(range(len(places)), 2)
        for a in range(1, len(places[first]))
        for b in range(1, len(places[second]))
    ]
    yield from random.sample(both, min(len(both), 4))


def _texts(place: str) -> list[str]:
    return [
        text.removeprefix(" ") if number else text for number, text in enumerate(place.split(" ;;"))
    ]


def _filled(template: str, places: list[list[str]], chosen: tuple[int, ...]) -> str:
    texts = iter(places[number][choice] for number, choice in enumerate(chosen))
    return _PLACE.sub(lambda _: next(texts), template)


def _rewritten(sql: str) -> str:
    """Lay a query out anew: comments, line ends, keywords in lower case."""
    return "-- the same\n" + _WORDS.sub(lambda word: f"\n  {word.group().lower()} /* x */ ", sql)
