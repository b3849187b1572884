"""Parse a SQL text with sqlglot, and check that the parsed form is lossless.

Spark always runs the author's text. The analysis only says which columns are read and what an edit
means. It counts only where it is shown to be lossless: the parsed form, written out and read again,
has the same tokens as the author's text, up to spelling. `SYNONYMS` and the functions named
`_spell_*` define all differences of spelling; a test executes each of them on Spark.

sqlglot knows hundreds of functions and rewrites many of their calls. Here a call keeps the name and
the arguments that it was written with; only those of `_KNOWN` become nodes of their own kind.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_KNOWN = (
    "AVG", "COUNT", "EXPLODE", "EXPLODE_OUTER", "INLINE", "MAX", "MIN", "POSEXPLODE",
    "POSEXPLODE_OUTER", "STACK", "SUM",
)  # fmt: skip

_WITH_UNIT = frozenset(
    {"DATEADD", "DATEDIFF", "DATE_ADD", "DATE_DIFF", "TIMEDIFF", "TIMESTAMPADD", "TIMESTAMPDIFF"}
)
_WITH_UNIT_ARGUMENTS = 3

SYNONYMS = {
    "!=": "<>", "==": "=", "!": "NOT", "MINUS": "EXCEPT", "INTEGER": "INT", "LONG": "BIGINT",
    "SHORT": "SMALLINT", "BYTE": "TINYINT", "REAL": "FLOAT", "DEC": "DECIMAL", "NUMERIC": "DECIMAL",
}  # fmt: skip
"""Operators and types that have two spellings in Spark."""

_SUFFIXES = frozenset("LSYDFlsydf")
_SUFFIXED = frozenset({"BIGINT", "SMALLINT", "TINYINT", "DOUBLE", "FLOAT"})
_SAYS_NOTHING = (
    ("SELECT", "ALL"),
    ("UNION", "DISTINCT"),
    ("EXCEPT", "DISTINCT"),
    ("INTERSECT", "DISTINCT"),
    ("DESC", "NULLS", "LAST"),
)
_DAY_OR_TIME = re.compile(r"'\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{1,6})?)?'")
_AMOUNT = re.compile(r"'(\d+) ([A-Za-z]+)'")
_NUMBER = re.compile(r"\d+(\.\d*)?")
_STRINGS = re.compile(r"""(['"])([^'"\\]*)\1""")
_COMMENT = r"--(?:[^\r\n]*[^\r\n\\])?(?=[\r\n]|\Z)|/\*(?!\+).*?\*/"
_GAP = re.compile(rf"(?:[ \t\r\n]|{_COMMENT})*", re.DOTALL)
_WORD = re.compile(r"[^\W\d]\w*")


_READER: Any = Spark.Parser  # whose tables of functions have no types
_WRITER: Any = Spark.Generator


class AsWritten(Spark):
    """Spark's SQL, read and written without replacing any construct by another."""

    class Parser(Spark.Parser):
        """Keeps calls as they are."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {name: _READER.FUNCTIONS[name] for name in _KNOWN}
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            name: parser
            for name, parser in _READER.FUNCTION_PARSERS.items()
            if name in ("CAST", "TRY_CAST", "EXTRACT", "TRIM")
        }
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}  # a column may have any of their names
        JOINS_HAVE_EQUAL_PRECEDENCE: ClassVar = False  # a comma stays a comma

    class Generator(Spark.Generator):
        """Writes clauses where they stood."""

        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            kind: write for kind, write in _WRITER.TRANSFORMS.items() if kind != exp.Select
        }
        EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar = set[type[exp.Expr]]()

        def not_sql(self, expression: exp.Not) -> str:
            """Write ``x IS NOT NULL``, ``x NOT IN``, ``x NOT BETWEEN``, as people do."""
            negated = expression.this
            if not isinstance(negated, (exp.Is, exp.In, exp.Between)):
                return super().not_sql(expression)
            left = self.sql(negated, "this")
            rest = self.sql(negated).removeprefix(left).strip()
            if isinstance(negated, exp.Is):
                return f"{left} IS NOT {rest.removeprefix('IS')}"
            return f"{left} NOT {rest}"

        def nullsafeeq_sql(self, expression: exp.NullSafeEQ) -> str:
            """Write the operator that Spark has for it."""
            return self.binary(expression, "<=>")


def parsed(sql: str) -> list[exp.Expr]:
    """Read the statements of a text, each as a fresh tree.

    Raises:
        SqlglotError: sqlglot can't read it.
    """
    statements = [
        statement
        for statement in sqlglot.parse(sql, dialect=AsWritten)
        if statement and not isinstance(statement, exp.Semicolon)
    ]
    for statement in statements:
        for call in statement.find_all(exp.Anonymous):
            _settle_unit(call)
    return statements


def _settle_unit(call: exp.Anonymous) -> None:
    """Take the unit in ``DATEDIFF(day, a, b)`` for the word that it is, and for no column."""
    arguments = call.expressions
    if call.name.upper() in _WITH_UNIT and len(arguments) == _WITH_UNIT_ARGUMENTS:
        unit = arguments[0]
        if isinstance(unit, exp.Column):
            unit.replace(exp.Var(this=unit.name))


def written(node: exp.Expr) -> str:
    """Write a part of a tree as SQL, without comments."""
    return node.sql(dialect=AsWritten, comments=False, unsupported_level=ErrorLevel.IGNORE)


def lossless_tree(sql: str) -> exp.Query | None:
    """Give a new tree of one query; None where it is not shown to hold every token of it, up to spelling."""
    if _kept_names(sql) is None:
        return None
    tree = parsed(sql)[0]
    return tree if isinstance(tree, exp.Query) else None


@lru_cache(maxsize=4096)
def _kept_names(sql: str) -> Counter[str] | None:
    """Count the names in a text, letter by letter; None where its analysis is not lossless."""
    try:
        trees = parsed(sql)
        if len(trees) != 1 or not isinstance(trees[0], exp.Query) or _gives_a_table(trees[0]):
            return None
        again = written(trees[0])
        ours, theirs = _tokens(again), _tokens(sql)
    except (SqlglotError, RecursionError):
        return None
    names = _names(trees[0])
    is_whole = (
        _gaps_are_blank(sql, theirs)
        and names <= Counter(token.text for token in theirs)
        and _same(_spelled(sql, theirs), _spelled(again, ours), names)
    )
    return names if is_whole else None


def _gives_a_table(tree: exp.Expr) -> bool:
    """Whether a function gets a whole table, in ``f(TABLE(t))``: sqlglot takes its name for a column's."""
    return any(call.name.upper() == "TABLE" for call in tree.find_all(exp.Anonymous))


@lru_cache(maxsize=4096)
def settled_text(sql: str) -> str:
    """Give the author's text without comments and layout, and with keywords in upper case.

    Two texts with equal settled texts are one program for Spark. A name keeps its case: it may name an
    output or a field; a text whose analysis is not lossless stays as it is.
    """
    kept = _kept_names(sql)
    if kept is None:
        return sql
    names = {name.lower() for name in kept}
    parts: list[str] = []
    end = 0
    for token in _distinct(_tokens(sql)):
        text = sql[token.start : token.end + 1]
        if token.token_type == TokenType.SEMICOLON:
            continue
        words = text.split()
        if parts and not (token.start == end and _may_merge(parts[-1][-1], text[0])):
            parts.append(" ")
        is_keyword = all(_WORD.fullmatch(word) and word.lower() not in names for word in words)
        parts.append(" ".join(words).upper() if is_keyword else text)  # GROUP BY is one token
        end = token.end + 1
    return "".join(parts)


def _tokens(sql: str) -> list[Token]:
    return sqlglot.tokenize(sql, dialect=AsWritten)


def _distinct(tokens: Sequence[Token]) -> list[Token]:
    """Leave one token of those that are made of one stretch of text, as ``10L`` is."""
    return list({token.start: token for token in reversed(tokens)}.values())[::-1]


def _may_merge(before: str, after: str) -> bool:
    """Whether two characters, side by side, may be one token for another reader than sqlglot."""
    loose = "(),[]"
    if before in loose or after in loose:
        return False
    return _is_wordlike(before) == _is_wordlike(after)


def _is_wordlike(character: str) -> bool:
    return character.isalnum() or character in "_.'\"`"


def _gaps_are_blank(sql: str, tokens: Sequence[Token]) -> bool:
    """Whether Spark, too, reads only layout and comments between the tokens."""
    end = 0
    for token in _distinct(tokens):
        if not _GAP.fullmatch(sql, end, token.start):
            return False
        end = token.end + 1
    return _GAP.fullmatch(sql, end) is not None


def _names(tree: exp.Expr) -> Counter[str]:
    return Counter(
        identifier.name for identifier in tree.find_all(exp.Identifier) if _is_of_author(identifier)
    )


def _is_of_author(name: exp.Identifier) -> bool:
    """Whether the author wrote a name: sqlglot generates the names of a pivot's columns."""
    made_up = isinstance(name.parent, exp.Pivot) and name.arg_key == "columns"
    return not made_up and name.find_ancestor(exp.Hint) is None


def _spelled(sql: str, tokens: Sequence[Token]) -> list[str]:
    """Write tokens in the one spelling that all equal ones share."""
    spellings = [_token(sql, token) for token in tokens if token.token_type not in _LEFT_OUT]
    for spell in _SPELLINGS:
        spellings = spell(spellings)
    return spellings


_LEFT_OUT = (TokenType.HINT, TokenType.SEMICOLON)


def _token(sql: str, token: Token) -> str:
    text = sql[token.start : token.end + 1]
    if token.token_type == TokenType.IDENTIFIER:
        return f"`{token.text}`"
    if token.token_type == TokenType.STRING:
        plain = _STRINGS.fullmatch(text)
        return f"'{plain.group(2)}'" if plain else text
    if token.token_type in (TokenType.RAW_STRING, TokenType.HEX_STRING, TokenType.BIT_STRING):
        return text
    if token.text in _SUFFIXES and token.start != token.end:
        return token.token_type.name
    folded = " ".join(token.text.upper().split())
    return SYNONYMS.get(folded, folded)


def _spell_null_safe(tokens: list[str]) -> list[str]:
    """``a IS NOT DISTINCT FROM b`` is ``a <=> b``."""
    return _replace(tokens, ["IS", "NOT", "DISTINCT", "FROM"], lambda _: ["<=>"])


def _spell_defaults(tokens: list[str]) -> list[str]:
    """Remove SELECT ALL, UNION DISTINCT and default orders of NULLs, which change no meaning."""
    for shape in _SAYS_NOTHING:
        tokens = _replace(tokens, shape, lambda stretch: stretch[:1])
    return _replace(
        tokens,
        [None, "NULLS", "FIRST"],
        lambda stretch: stretch if stretch[0] == "DESC" else stretch[:1],
    )


def _spell_suffixes(tokens: list[str]) -> list[str]:
    """``10L`` is ``CAST(10 AS BIGINT)``."""
    shape: list[str | None] = ["CAST", "(", None, "AS", None, ")"]

    def short(cast: list[str]) -> list[str]:
        fits = _NUMBER.fullmatch(cast[2]) and cast[4] in _SUFFIXED
        return [cast[2], "::", cast[4]] if fits else cast

    return _replace(tokens, shape, short)


def _spell_literals(tokens: list[str]) -> list[str]:
    """``DATE '2024-01-01'`` is ``CAST('2024-01-01' AS DATE)``, and so for TIMESTAMP."""

    def cast(literal: list[str]) -> list[str]:
        fits = _DAY_OR_TIME.fullmatch(literal[1])
        return ["CAST", "(", literal[1], "AS", literal[0], ")"] if fits else literal

    return _replace(_replace(tokens, ["DATE", None], cast), ["TIMESTAMP", None], cast)


def _spell_intervals(tokens: list[str]) -> list[str]:
    """``INTERVAL 1 DAY``, ``INTERVAL '1' DAY`` and ``INTERVAL '1 DAY'`` are the same."""

    def quoted(interval: list[str]) -> list[str]:
        amount = _AMOUNT.fullmatch(interval[1])
        if amount:
            return ["INTERVAL", f"'{amount.group(1)}'", amount.group(2).upper()]
        is_number = interval[1].isdigit()
        return ["INTERVAL", f"'{interval[1]}'"] if is_number else interval

    return _replace(tokens, ["INTERVAL", None], quoted)


_SPELLINGS: tuple[Callable[[list[str]], list[str]], ...] = (
    _spell_null_safe,
    _spell_defaults,
    _spell_suffixes,
    _spell_literals,
    _spell_intervals,
)


def _replace(
    tokens: list[str], shape: Sequence[str | None], by: Callable[[list[str]], list[str]]
) -> list[str]:
    """Replace every stretch of tokens that has a shape, in which None is any token."""
    replaced: list[str] = []
    place = 0
    while place < len(tokens):
        stretch = tokens[place : place + len(shape)]
        fits = len(stretch) == len(shape) and all(
            part in (None, token) for part, token in zip(shape, stretch, strict=True)
        )
        replaced += by(stretch) if fits else [tokens[place]]
        place += len(shape) if fits else 1
    return replaced


def _same(theirs: list[str], ours: list[str], names: Counter[str]) -> bool:
    """Compare the author's tokens with ours, which have an AS before every alias."""
    aliases = {name.upper() for name in names} | {f"`{name}`" for name in names}
    place = 0
    for word, following in zip_longest(ours, ours[1:]):
        if place < len(theirs) and theirs[place] == word:
            place += 1
        elif word != "AS" or following not in aliases:
            return False
    return place == len(theirs)
