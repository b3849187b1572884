"""Find the parts of a query whose answer may change tomorrow although the input is the same.

The list follows Spark 4.2's own functions: those that Spark executes as non-deterministic, and
those that answer from the clock, the session, files or code outside of the query. Functions whose
answer depends only on the order of rows (`first`, `collect_list`, `mode`, ...) are allowed, because
an author can order the rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from backfill_assets.errors import DeclarationError
from backfill_assets.models.sql.query import SqlQuery
from backfill_assets.models.sql.spark_tokens import place

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from backfill_assets.models.model import Model
    from backfill_assets.models.sql.spark_tokens import Token


VOLATILE = frozenset(
    {
        "aes_encrypt",  # draws its first block
        "curdate", "current_catalog", "current_database", "current_date", "current_path",
        "current_schema", "current_time", "current_timestamp", "current_timezone", "current_user",
        "getdate", "input_file_block_length", "input_file_block_start", "input_file_name",
        "java_method", "kll_merge_agg_bigint", "kll_merge_agg_double", "kll_merge_agg_float",
        "kll_sketch_agg_bigint", "kll_sketch_agg_double", "kll_sketch_agg_float", "localtime",
        "localtimestamp", "monotonically_increasing_id", "now", "rand", "randn", "random",
        "randstr", "reflect", "session_user", "shuffle", "spark_partition_id", "try_reflect",
        "uniform", "user", "uuid", "version",
    }
)  # fmt: skip
"""Functions, by name in lower case."""

_OF_THE_CLOCK = frozenset({"current_date", "current_time", "current_timestamp", "localtimestamp"})
_OF_THE_SESSION = frozenset({"current_path", "current_user", "session_user", "user"})
_SPECIAL_TIME = re.compile(r"""r?['"]\s*(now|today|tomorrow|yesterday)\b""", re.IGNORECASE)
_TYPED = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"})
_TAKING_TIME = _TYPED | {
    "ADD_MONTHS", "DATEADD", "DATEDIFF", "DATEPART", "DATE_ADD", "DATE_DIFF", "DATE_FORMAT",
    "DATE_PART", "DATE_SUB", "DATE_TRUNC", "DAY", "DAYNAME", "DAYOFMONTH", "DAYOFWEEK", "DAYOFYEAR",
    "EXTRACT", "FROM_UTC_TIMESTAMP", "HOUR", "LAST_DAY", "MINUTE", "MONTH", "MONTHNAME",
    "MONTHS_BETWEEN", "NEXT_DAY", "QUARTER", "SECOND", "TIMESTAMPADD", "TIMESTAMPDIFF", "TO_DATE",
    "TO_TIMESTAMP", "TO_TIMESTAMP_LTZ", "TO_TIMESTAMP_NTZ", "TO_UNIX_TIMESTAMP", "TO_UTC_TIMESTAMP",
    "TRUNC", "TRY_TO_DATE", "TRY_TO_TIMESTAMP", "UNIX_DATE", "UNIX_MICROS", "UNIX_MILLIS",
    "UNIX_SECONDS", "UNIX_TIMESTAMP", "WEEKDAY", "WEEKOFYEAR", "YEAR",
}  # fmt: skip
_ORDERED = frozenset({"<", "<=", ">", ">="})


def volatile_in(
    tokens: Sequence[Token], columns: frozenset[str] = frozenset()
) -> Iterator[tuple[str, Token]]:
    """Give each volatile part by name, with its token.

    Args:
        tokens: of a query, or of a part of one.
        columns: names in lower case that are columns, so that a bare ``user`` is one.
    """
    brackets = _open_brackets(tokens)
    aliases: dict[str, list[tuple[int, ...]]] = {}
    for at, token in enumerate(tokens):
        if _text(tokens, at - 1) == "AS":
            aliases.setdefault(token.name, []).append(brackets[at])
    for at, token in enumerate(tokens):
        before, after = _text(tokens, at - 1), _text(tokens, at + 1)
        is_column = token.name in columns or any(
            brackets[at][: len(inside)] != inside for inside in aliases.get(token.name, ())
        )
        reason = (
            _without_brackets(token, before, after, is_column=is_column)
            or _called(tokens, at, after)
            or _said(tokens, at)
            or _time_of_the_run(tokens, at, brackets[at])
        )
        if reason:
            yield reason, token


def _called(tokens: Sequence[Token], at: int, after: str) -> str:
    """A function that is called, under any qualifier."""
    name = tokens[at].name
    if after != "(":
        return ""
    if name == "unix_timestamp":  # the clock's, without an argument
        return name if _text(tokens, at + 2) == ")" else ""
    return name if name in VOLATILE else ""


def _without_brackets(token: Token, before: str, after: str, *, is_column: bool) -> str:
    """A word that Spark takes for a function where no column has its name, in backquotes too."""
    if before == "." or after in (".", "("):
        return "_metadata" if token.name == "_metadata" else ""
    is_alias = before == "AS"
    if token.name == "_metadata" or (token.name in _OF_THE_CLOCK and not is_alias):
        return token.name
    is_named = is_alias or is_column
    return token.name if token.name in _OF_THE_SESSION and not is_named else ""


def _said(tokens: Sequence[Token], at: int) -> str:
    """The volatile part that a word forms with the next one: a sample, a script."""
    word = tokens[at].keyword
    following = tokens[at + 1] if at + 1 < len(tokens) else None
    if following is None:
        return ""
    if word == "TABLESAMPLE" and following.text.upper() in ("(", "SYSTEM", "BERNOULLI"):
        return "tablesample"
    return "transform" if word == "USING" and following.kind == "string" else ""


def _time_of_the_run(tokens: Sequence[Token], at: int, inside: tuple[int, ...]) -> str:
    """A text that Spark reads as a time: DATE 'today', CAST('now' AS TIMESTAMP), DATE_ADD('today', 1), ds < 'today'."""
    special = _SPECIAL_TIME.match(tokens[at].text)
    if special is None:
        return ""
    before, after = _text(tokens, at - 1), _text(tokens, at + 1)
    is_cast = after == "::" or (after == "AS" and before == "(")
    is_typed = before in _TYPED or (is_cast and _text(tokens, at + 2) in _TYPED)
    is_taken = bool(inside) and _text(tokens, inside[-1] - 1) in _TAKING_TIME
    is_bound = bool({before, after} & _ORDERED) or "BETWEEN" in (before, _text(tokens, at - 3))
    return special.group(1).lower() if is_typed or is_taken or is_bound else ""


def _open_brackets(tokens: Sequence[Token]) -> list[tuple[int, ...]]:
    """Per token, the brackets that it stands in, each by its place."""
    here: tuple[int, ...] = ()
    found: list[tuple[int, ...]] = []
    for at, token in enumerate(tokens):
        here = here[:-1] if token.text == ")" else here
        found.append(here)
        here = (*here, at) if token.text == "(" else here
    return found


def _text(tokens: Sequence[Token], at: int) -> str:
    return tokens[at].text.upper() if 0 <= at < len(tokens) else ""


def volatile_query(*, model: str, function: str, line: int | None = None) -> DeclarationError:
    """Name what makes the answer of a query no function of its input."""
    where = f" in line {line} of its query" if line else ""
    return DeclarationError(
        found=f"model '{model}' uses {function}{where}, so a rebuild would differ without a reason",
        do="remove it (if it is a column, write its table before it), or declare the model "
        "volatile=True",
    )


def check_stable(model: Model, columns: frozenset[str] = frozenset()) -> None:
    """Refuse volatile parts in a SQL model that is not declared volatile.

    Args:
        model: any; of Python models, `models.python_guard` knows.
        columns: those of its upstreams, in lower case.

    Raises:
        DeclarationError: it uses one of `VOLATILE`, or another volatile form.
    """
    query = model.logic
    if model.volatile or not isinstance(query, SqlQuery):
        return
    for function, token in volatile_in(query.tokens(), columns):
        line, _ = place(query.sql, token.start)
        raise volatile_query(model=model.name, function=function, line=line)
