"""Find the names and parameters of a query among its tokens, and classify them by position.

A name after FROM, JOIN or TABLE, or after a comma between relations, is a table's. One pass over the
tokens with a stack of brackets finds them. Nothing is parsed, so no new syntax is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from backfill_assets.errors import DeclarationError
from backfill_assets.models.sql.spark_tokens import place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from backfill_assets.models.sql.spark_tokens import Token

PARAMETERS = ("start_ds", "end_ds", "start_ts", "end_ts")
Role: TypeAlias = Literal["table", "argument", "column", "hint"]
_Expected: TypeAlias = Literal["relation", "argument", "joined", "on", "inline", "pipe", "value"]

_IN_PLACE_OF_A_TABLE: dict[str, _Expected] = {"LATERAL": "relation", "VALUES": "inline"}
_CLAUSES = frozenset(
    {"WHERE", "GROUP", "HAVING", "QUALIFY", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT",
     "OFFSET", "WINDOW"}
)  # fmt: skip
_BEFORE_BY = frozenset({"GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"})
_JOINS = frozenset(
    {"JOIN", "LEFT", "RIGHT", "FULL", "OUTER", "INNER", "CROSS", "NATURAL", "SEMI", "ANTI"}
)
_SET_OPERATIONS = frozenset({"UNION", "EXCEPT", "MINUS", "INTERSECT"})
_QUERY_STARTS = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES"})
_BEFORE_TABLE = frozenset({"", "(", ",", "=>", ")", "ALL", "DISTINCT", "NAME", *_SET_OPERATIONS})
_BEFORE_VALUE = frozenset(
    {"SELECT", "DISTINCT", "ALL", "AND", "OR", "NOT", "BETWEEN", "WHEN", "THEN", "ELSE", "CASE",
     "WHERE", "HAVING", "QUALIFY", "ON", "BY", "LIKE", "ILIKE", "RLIKE", "REGEXP", "LIMIT",
     "OFFSET", "FROM", "DIV", "ESCAPE", "FOR", "IN", "VALUES", "INTERVAL", "PLACING", "TO"}
)  # fmt: skip

_PREFIXES = frozenset({"NOT", "CASE", "INTERVAL", "VALUES"})
_MAY_PRECEDE = frozenset({"ROWS", "RANGE", "EXTEND", "AGGREGATE", "SET", "IF", "USING", "AS"})


def unplaceable_token(*, token: str, text: str, at: int, why: str) -> DeclarationError:
    """Say where a token stands that can be read in two ways, and why."""
    line, column = place(text, at)
    return DeclarationError(found=f"line {line}, column {column}: '{token}' {why}")


@dataclass(frozen=True, slots=True)
class Name:
    """A name of one or more parts.

    Attributes:
        parts: its tokens, the dots between them left out.
        role: a table in a list of relations; a table after the word TABLE; a name inside a hint; or
            anything else, which may be a column or a field.
        opened: whether a dot follows, as in ``t.*``.
        scope: the number of the innermost query that it stands in.
    """

    parts: tuple[Token, ...]
    role: Role
    opened: bool = False
    scope: int = 0

    @property
    def text(self) -> str:
        """The name as models and sources are named: lower case, joined by dots."""
        return ".".join(part.name for part in self.parts)


@dataclass(slots=True)
class _Bracket:
    """The parser's state inside one pair of brackets."""

    expected: _Expected = "value"
    is_query: bool = False
    scope: int = 0


@dataclass(slots=True)
class _Reader:
    tokens: Sequence[Token]
    brackets: list[_Bracket] = field(default_factory=lambda: [_Bracket(is_query=True)])
    in_hint: bool = False
    scopes: int = 1
    names: list[Name] = field(default_factory=list[Name])

    def read(self) -> None:
        at = 0
        while at < len(self.tokens):
            token = self.tokens[at]
            if token.kind == "operator":
                self._operator(at)
                at += 1
            elif token.kind in ("word", "quoted"):
                at = self._word(at)
            else:
                at += 1

    def _operator(self, at: int) -> None:
        top, sign = self.brackets[-1], self.tokens[at].text
        if sign in "([":
            self._open(at)
        elif sign in ")]" and len(self.brackets) > 1:
            self.brackets.pop()
        elif sign == "," and top.expected in ("joined", "on"):
            top.expected = "relation"
        elif sign == "|>":
            top.expected = "pipe"
            self._become_query(top)
        elif sign in ("/*+", "*/"):
            self.in_hint = sign == "/*+"

    def _open(self, at: int) -> None:
        expected, is_query = self.brackets[-1].expected, self._keyword(at + 1) in _QUERY_STARTS
        inner = expected if expected in ("relation", "argument") and not is_query else "value"
        self._had_relation()
        self.brackets.append(_Bracket(inner, scope=self.brackets[-1].scope))
        if is_query:
            self._become_query(self.brackets[-1])

    def _become_query(self, bracket: _Bracket) -> None:
        if not bracket.is_query:
            bracket.is_query, bracket.scope = True, self.scopes
            self.scopes += 1

    def _had_relation(self) -> None:
        top = self.brackets[-1]
        if top.expected in ("relation", "argument"):
            top.expected = "joined" if top.expected == "relation" else "value"

    def _word(self, at: int) -> int:
        """Take a keyword, or a whole name; give the index of what follows."""
        if self._keyword(at - 1) == "." or self._keyword(at + 1) == ".":
            return self._name(at)
        expected = self._after_keyword(at)
        if expected is None:
            return self._name(at)
        self.brackets[-1].expected = expected
        return at + 1

    def _after_keyword(self, at: int) -> _Expected | None:
        """The role that a keyword gives to the next tokens; None for a word that is a name here."""
        word, top = self._keyword(at), self.brackets[-1]
        if word == "SELECT" or word in _SET_OPERATIONS:
            self._become_query(top)
            return "value"
        if word == "FROM" and top.is_query:
            return top.expected if self._is_distinct_from(at) else "relation"
        if word == "TABLE":
            return self._after_table(at)
        return self._in_relations(word, at, top.expected)

    def _after_table(self, at: int) -> _Expected | None:
        follows = self._keyword(at + 1) == "(" or self._is_name(at + 1)
        return "argument" if follows and self._keyword(at - 1) in _BEFORE_TABLE else None

    def _in_relations(self, word: str, at: int, expected: _Expected) -> _Expected | None:
        """The role that a keyword between FROM and the next clause gives to the next tokens."""
        if expected == "relation":
            return _IN_PLACE_OF_A_TABLE.get(word)
        if expected not in ("joined", "on", "inline", "pipe"):
            return None
        if word in _CLAUSES:
            return "value" if self._begins_clause(word, at) else expected
        if expected == "inline":  # a name after the rows is their alias
            return expected if self._keyword(at - 1) in (",", "VALUES") else "joined"
        return self._in_joins(word, at, expected)

    def _begins_clause(self, word: str, at: int) -> bool:
        """Whether a word begins its clause, or is the alias of the relation before it."""
        following, then = self._keyword(at + 1), self._keyword(at + 2)
        if self._keyword(at - 1) == "AS":
            return False
        if word in _BEFORE_BY:
            return following == "BY"
        if word == "WINDOW":
            return self._is_name(at + 1) and then == "AS"
        is_join = following in ("JOIN", "ON", "USING") or (following in _JOINS and then in _JOINS)
        return at + 1 < len(self.tokens) and following not in (",", ")", "|>", ";") and not is_join

    def _in_joins(self, word: str, at: int, expected: _Expected) -> _Expected:
        if word == "JOIN":
            return "relation"
        if word == "LATERAL" and self._keyword(at + 1) == "VIEW":
            return "value"
        return "on" if word == "ON" and expected == "joined" else expected

    def _name(self, at: int) -> int:
        parts, here = [self.tokens[at]], at + 1
        while self._keyword(here) == "." and self._is_name(here + 1):
            parts.append(self.tokens[here + 1])
            here += 2
        if self._keyword(at - 1) not in (".", ":"):
            is_opened = self._keyword(here) == "."
            name = Name(tuple(parts), self._role(), is_opened, self.brackets[-1].scope)
            is_call = self._keyword(here) == "(" and name.text != "identifier"
            self.names += [] if is_call else [name]
        self._had_relation()
        return here

    def _role(self) -> Role:
        if self.in_hint:
            return "hint"
        expected = self.brackets[-1].expected
        if expected in ("relation", "argument"):
            return "table" if expected == "relation" else "argument"
        return "column"

    def _is_distinct_from(self, at: int) -> bool:
        words = [self._keyword(at - back) for back in (1, 2)]
        return words[0] == "DISTINCT" and words[1] in ("IS", "NOT")

    def _is_name(self, at: int) -> bool:
        return at < len(self.tokens) and self.tokens[at].kind in ("word", "quoted")

    def _keyword(self, at: int) -> str:
        return self.tokens[at].keyword if 0 <= at < len(self.tokens) else ""


def names_of(tokens: Sequence[Token]) -> tuple[Name, ...]:
    """Find every name that is not called as a function, with its role."""
    reader = _Reader(tokens)
    reader.read()
    return tuple(reader.names)


def cte_names(tokens: Sequence[Token]) -> frozenset[str]:
    """Name the queries that any WITH defines, in lower case."""
    return frozenset(
        name
        for at, token in enumerate(tokens)
        if token.keyword == "WITH" and (at == 0 or tokens[at - 1].text == "(")
        for name in read_with(tokens, at)[0]
    )


def read_with(tokens: Sequence[Token], at: int) -> tuple[list[str], int]:
    """Read a WITH: the names that it defines, and the index of the query after them."""
    names_read: list[str] = []
    at += 2 if at + 2 < len(tokens) and tokens[at + 1].keyword == "RECURSIVE" else 1
    while at < len(tokens) and tokens[at].name:
        names_read.append(tokens[at].name)
        at = _after_brackets(tokens, at + 1)
        if at < len(tokens) and tokens[at].keyword in ("AS", "(", "MAX"):
            at = _after_brackets(tokens, at)  # those were its columns
        if at == len(tokens) or tokens[at].text != ",":
            break
        at += 1
    return names_read, at


def _after_brackets(tokens: Sequence[Token], at: int) -> int:
    """The index after the next pair of brackets."""
    depth = 0
    while at < len(tokens):
        depth += {"(": 1, ")": -1}.get(tokens[at].text, 0)
        at += 1
        if depth == 0 and tokens[at - 1].text == ")":
            break
    return at


def parameters_in(text: str, tokens: Sequence[Token]) -> list[int]:
    """Find the colons of named parameters; `column:field` is a path, and left alone.

    Raises:
        DeclarationError: a colon may be either.
    """
    return [at for at in range(len(tokens) - 1) if _is_parameter(text, tokens, at)]


def _is_parameter(text: str, tokens: Sequence[Token], at: int) -> bool:
    """Whether a value is expected where a colon stands; after a value it begins a path."""
    colon, named = tokens[at], tokens[at + 1]
    if colon.text != ":" or not named.name or at == 0:
        return colon.text == ":" and bool(named.name)
    before, earlier = tokens[at - 1], tokens[at - 2].text if at > 1 else ""
    if before.kind == "operator":
        return before.text not in (")", "]")
    if before.keyword in _MAY_PRECEDE and named.name in PARAMETERS:
        raise unplaceable_token(
            token=f"{before.text}:{named.text}", text=text, at=before.start,
            why="may be a column with a path, or a keyword with a parameter; put the column into "
            "backquotes, or the parameter into brackets",
        )  # fmt: skip
    is_field = earlier in (".", "<") or (earlier == "," and before.keyword not in _PREFIXES)
    return before.keyword in _BEFORE_VALUE and not is_field
