"""Split a Spark SQL text into tokens with their positions.

The rules are those of Spark 4.2's own lexer (`SqlBaseLexer.g4`): the longest match wins, and of two
equally long matches the rule that comes first. White space and comments are left out; a hint is not a
comment. `>>` gives two tokens, because it is an operator or the end of two types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from backfill_assets.errors import BackfillAssetsError

if TYPE_CHECKING:
    from collections.abc import Iterator

Kind: TypeAlias = Literal["word", "quoted", "string", "number", "operator"]


class UnreadableSqlError(BackfillAssetsError):
    """A part of a text is no token of Spark SQL, or is never closed."""

    def __init__(self, *, found: str, text: str, at: int) -> None:
        self.found, self.at = found, at
        line, column = place(text, at)
        super().__init__(f"line {line}, column {column}: found {found}; correct the SQL")


@dataclass(frozen=True, slots=True)
class Token:
    """One token.

    Attributes:
        kind: a bare word (keyword or name), a name in backquotes, a text, a number or an operator
            (brackets, commas and the ends of a hint included).
        text: as it is written.
        start: the index of its first character.
        end: the index after its last one.
    """

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The word in upper case, or the operator; empty for names in backquotes and literals."""
        return self.text.upper() if self.kind in ("word", "operator") else ""

    @property
    def name(self) -> str:
        """The name in lower case, without backquotes; empty if the token is no name."""
        if self.kind == "quoted":
            return self.text[1:-1].replace("``", "`").lower()
        return self.text.lower() if self.kind == "word" else ""


_SPACE = re.compile("[ \t\n\f\r\v\u00a0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000]+")
_LINE_COMMENT = re.compile(r"--(?:\\\n|[^\r\n])*\r?\n?")
_EXPONENT = r"[Ee][+-]?[0-9]+"
_SUFFIX = r"(?:[Bb][Dd]|[FfDd])"
_NUMBER = re.compile(
    rf"(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:{_EXPONENT})?{_SUFFIX}?(?![A-Za-z0-9_])"
    rf"|[0-9]+(?:[LlSsYy]|(?:{_EXPONENT})?{_SUFFIX}|{_EXPONENT})?"
)
_URI = re.compile(r"[^\W\d_]+://[\w/\-.?=&#%]+")
_STRINGS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    ("string", re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)),
    ("string", re.compile(r'"(?:[^"\\]|\\.|"")*"', re.DOTALL)),
    ("string", re.compile(r"[rR](?:'[^']*'|\"[^\"]*\")")),
    ("quoted", re.compile(r"`(?:[^`]|``)*`")),
)
_OPERATOR = re.compile(
    r"/\*\+|\*/|<=>|<>|<=|<<|!=|!>|!<|==|=>|>=|->|\|\||\|>|::|[;(),.\[\]!=<>+\-*/%~&|^:?]"
)
_DOLLAR_TAG = re.compile(r"\$[^\W\d_]*\$")


@lru_cache(maxsize=512)
def tokens_of(text: str) -> tuple[Token, ...]:
    """Cut a text into its tokens.

    Raises:
        UnreadableSqlError: a string, name or comment is never closed, or a character is none of
            Spark SQL.
    """
    return tuple(_tokens(text))


def place(text: str, at: int) -> tuple[int, int]:
    """Give line and column of an index, both from 1."""
    before = text[:at]
    return before.count("\n") + 1, at - before.rfind("\n")


def _tokens(text: str) -> Iterator[Token]:
    at = 0
    while at < len(text):
        end = _hidden(text, at)
        if end == at:
            kind, end = _longest(text, at)
            yield Token(kind, text[at:end], at, end)
        at = end


def _hidden(text: str, at: int) -> int:
    """The end of the white space or comment that begins here; the same index where none does."""
    if text.startswith("/*", at) and not text.startswith("/*+", at):
        return _comment_end(text, at)
    match = _SPACE.match(text, at) or _LINE_COMMENT.match(text, at)
    return match.end() if match else at


_COMMENT_EDGE = re.compile(r"/\*(?!\+)|\*/")


def _comment_end(text: str, at: int) -> int:
    """The end of a bracketed comment, which may have others inside."""
    depth, here = 0, at
    for edge in _COMMENT_EDGE.finditer(text, at):
        depth += 1 if edge.group() == "/*" else -1
        here = edge.end()
        if depth == 0:
            return here
    raise UnreadableSqlError(found="a comment that is never closed", text=text, at=at)


def _longest(text: str, at: int) -> tuple[Kind, int]:
    matches = list(_matches(text, at))
    if not matches:
        what = {"'": "a text", '"': "a text", "`": "a name", "$": "a text in dollar signs"}
        unclosed = what.get(text[at])
        found_here = f"{unclosed} that is never closed" if unclosed else f"'{text[at]}'"
        raise UnreadableSqlError(found=found_here, text=text, at=at)
    return max(matches, key=lambda match: match[1])  # the first of two as long


def _matches(text: str, at: int) -> Iterator[tuple[Kind, int]]:
    """Every token that may begin here, in the order of Spark's rules."""
    operator = _OPERATOR.match(text, at)
    if operator:
        yield "operator", operator.end()
    for kind, pattern in _STRINGS:
        string = pattern.match(text, at)
        if string:
            yield kind, string.end()
    tag = _DOLLAR_TAG.match(text, at)
    closed = text.find(tag.group(), tag.end()) if tag else -1
    if tag and closed >= 0:
        yield "string", closed + len(tag.group())
    number = _NUMBER.match(text, at)
    if number:
        yield "number", number.end()
    uri = _URI.match(text, at)
    if uri:
        yield "word", uri.end()
    end = _word_end(text, at)
    if end > at:
        yield "word", end


def _word_end(text: str, at: int) -> int:
    """The end of letters of any script, digits and underscores."""
    while at < len(text) and (text[at].isalpha() or text[at] in "0123456789_"):
        at += 1
    return at
