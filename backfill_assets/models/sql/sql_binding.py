"""Replace the upstreams in a query's text by views, and refuse a text that is not one query."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from backfill_assets.models.sql.sql_names import (
    names_of,
    read_with,
    unplaceable_token,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from backfill_assets.models.sql.spark_tokens import Token
    from backfill_assets.models.sql.sql_names import Name

Edit: TypeAlias = "tuple[Token, str]"
"""A token, and what stands in its place."""

_STARTS = frozenset({"SELECT", "WITH", "FROM", "TABLE", "VALUES", "MAP", "REDUCE", "("})


def edited(sql: str, edits: Sequence[Edit]) -> str:
    """Write a text with some tokens replaced; no two tokens grow together."""
    written, done = "", 0
    for token, text in sorted(edits, key=lambda edit: edit[0].start):
        written += sql[done : token.start]
        glued = written[-1:].isalnum() or written.endswith("_")
        written += f" {text}" if glued and text[:1].isalpha() else text
        done = token.end
    return written + sql[done:]


def edits_of_names(sql: str, tokens: Sequence[Token], views: Mapping[str, str]) -> Iterator[Edit]:
    """Replace the upstreams' names: tables by views under the same name, and columns' qualifiers.

    A table becomes ``(`view` AS `name`)``, which is a relation as it was: an alias, a sample or a
    pivot may follow, and columns may still be qualified by the table's own name.

    Raises:
        DeclarationError: a column may belong to an upstream, or be a field of something that
            is called as the upstream's first part.
    """
    names = names_of(tokens)
    tables = (name.text for name in names if name.role in ("table", "argument"))
    read = frozenset(tables) & frozenset(views)
    for name in names:
        if _upstream(name) not in read:
            continue
        if name.role in ("table", "argument"):
            yield from _as_table(tokens, name, views) if len(name.parts) == 2 else ()  # noqa: PLR2004
        elif name.role == "hint" or name.opened or len(name.parts) > 2:  # noqa: PLR2004
            _require_unambiguous(sql, tokens, names, name, read)
            yield from _dropped(tokens, name.parts[0], name.parts[1])


def _upstream(name: Name) -> str:
    """Name the upstream that the first two parts of a name may mean."""
    return ".".join(part.name for part in name.parts[:2])


def _as_table(tokens: Sequence[Token], name: Name, views: Mapping[str, str]) -> Iterator[Edit]:
    subject, table = name.parts
    view = f"`{views[name.text].replace('`', '``')}`"
    yield from _dropped(tokens, subject, table)
    if name.role == "argument":  # TABLE takes a bare name
        yield table, view
    else:
        yield table, f"({view} AS `{table.name.replace('`', '``')}`)"


def _dropped(tokens: Sequence[Token], first: Token, second: Token) -> Iterator[Edit]:
    """Leave out all tokens from the first one up to the second."""
    return ((token, "") for token in tokens if first.start <= token.start < second.start)


def _require_unambiguous(
    sql: str, tokens: Sequence[Token], names: Sequence[Name], name: Name, read: frozenset[str]
) -> None:
    """Refuse a qualifier of two parts where either part is the name of something else as well.

    The first part of another upstream's name is none: that part is left out there, too.
    """
    subject, table = name.parts[:2]
    tables = {written.parts[0].start for written in names if written.role in ("table", "argument")}
    ours = {
        part.start
        for written in names
        if [part.name for part in written.parts[:2]] == [subject.name, table.name]
        for part in written.parts[:2]
    } | {written.parts[0].start for written in names if _upstream(written) in read}
    for token, following in pairwise((*tokens, None)):
        if token is None or token.start in ours:
            continue
        is_table = token.start in tables and following is not None and following.text == "."
        is_qualifier = following is not None and following.text == "."
        if (token.name == subject.name and not is_table) or (
            token.name == table.name and not is_qualifier
        ):
            raise unplaceable_token(
                token=sql[subject.start : name.parts[-1].end], text=sql, at=subject.start,
                why=f"may be the upstream's, or that of another '{token.text}'; give the table an "
                "alias, and write its columns with that",
            )  # fmt: skip


def require_in_scope(sql: str, tokens: Sequence[Token], columns: frozenset[str]) -> None:
    """Refuse a qualifier of two parts that means a table of an outer query where a column has its name.

    After binding it has one part, which Spark resolves as the inner query's column first.

    Args:
        sql: the text.
        tokens: of it.
        columns: of all that the query reads, in small letters.

    Raises:
        DeclarationError: it may be either.
    """
    names = names_of(tokens)
    tables = {(name.text, name.scope) for name in names if name.role in ("table", "argument")}
    upstreams = {text for text, _ in tables}
    for name in names:
        is_qualified = len(name.parts) > 1  # a column may be named like a table of WITH
        is_taken = name.role in ("table", "argument", "hint")
        if is_taken or not is_qualified or _upstream(name) not in upstreams:
            continue
        is_outer = (_upstream(name), name.scope) not in tables
        if is_outer and name.parts[1].name.lower() in columns:
            raise unplaceable_token(
                token=sql[name.parts[0].start : name.parts[-1].end], text=sql,
                at=name.parts[0].start,
                why="means a table of the query around this one, and may be the column "
                f"'{name.parts[1].name}' here; give that table an alias, and write its columns "
                "with that",
            )  # fmt: skip


def not_one_query(tokens: Sequence[Token]) -> str:
    """Describe a text that is not one query; empty if it is one."""
    words = [*tokens]
    while words and words[-1].text == ";":
        words.pop()
    if any(word.text == ";" for word in words):
        return "found a second statement after a semicolon"
    return _unclosed(words) or _other_statement(words)


def _other_statement(tokens: Sequence[Token]) -> str:
    is_with = bool(tokens) and tokens[0].keyword == "WITH"
    begins = read_with(tokens, 0)[1] if is_with else 0
    if begins >= len(tokens):
        return "found WITH and no query after it" if is_with else "found nothing"
    if tokens[begins].text.upper() not in _STARTS:
        return f"found {tokens[begins].text.upper()}"
    inserts = any(
        (token.keyword, following.keyword) in {("INSERT", "INTO"), ("INSERT", "OVERWRITE")}
        for token, following in pairwise(tokens)
    )
    return "found INSERT" if inserts else ""


def _unclosed(tokens: Sequence[Token]) -> str:
    pairs, opened = {")": "(", "]": "["}, list[str]()
    for token in tokens:
        if token.text in ("(", "["):
            opened.append(token.text)
        elif token.text in pairs and (not opened or opened.pop() != pairs[token.text]):
            return f"found '{token.text}' without its '{pairs[token.text]}'"
    return f"found '{opened[-1]}' that is never closed" if opened else ""
