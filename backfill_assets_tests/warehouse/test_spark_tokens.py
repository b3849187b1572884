"""Our tokens against Spark's own lexer, over random texts of everything that is hard to cut."""

from __future__ import annotations

import os
import random
from typing import TYPE_CHECKING, Any

import pytest
from py4j.java_gateway import get_field

from backfill_assets.models.sql.spark_tokens import UnreadableSqlError, tokens_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        os.environ.get("BACKFILL_TEST_SPARK", "local") == "connect", reason="needs Spark's lexer"
    ),
]

PIECES = [
    "'", "''", '"', "`", "``", "\\", "\\'", "r'", 'R"', "/*", "*/", "/*+", "--", "\n", "\\\n",
    "\r\n", " ", "$", "$$", "$a$", "$b1$", "a", "x", "é", "1", "23", ".", "e", "E5", "L", "BD",
    "_", ":", "::", "://", "<", ">", "=", "!", "|", "-", "+", "*", "/", "(", ")", "[", "?", "#",
    "@", ";", ",", "%", "struct<", "SELECT", "\u3000", "名", "²", "{", "^", "~", "&",
]  # fmt: skip


def of_spark(spark: SparkSession, text: str) -> list[tuple[int, int]] | None:
    """The tokens of Spark's lexer by their places; None for a text that it can't read."""
    jvm: Any = spark._jvm
    parser = jvm.org.apache.spark.sql.catalyst.parser
    characters = jvm.org.antlr.v4.runtime.CharStreams.fromString(text)
    lexer = parser.SqlBaseLexer(parser.UpperCaseCharStream(characters))
    lexer.removeErrorListeners()
    names, found, begun = lexer.getVocabulary(), list[tuple[int, int]](), None
    for token in lexer.getAllTokens():
        name = names.getSymbolicName(token.getType())
        start, end = token.getStartIndex(), token.getStopIndex() + 1
        if name == "UNRECOGNIZED":
            return None
        if name == "BEGIN_DOLLAR_QUOTED_STRING":
            begun = start
        elif name == "END_DOLLAR_QUOTED_STRING" and begun is not None:
            found.append((begun, end))
            begun = None
        elif name.startswith("SHIFT_RIGHT"):  # two or three ends of a type, for us
            found += [(at, at + 1) for at in range(start, end)]
        elif begun is None and token.getChannel() == 0:
            found.append((start, end))
    unclosed = begun is not None or get_field(lexer, "has_unclosed_bracketed_comment")
    return None if unclosed else found


def ours(text: str) -> list[tuple[int, int]] | None:
    try:
        return [(token.start, token.end) for token in tokens_of(text)]
    except UnreadableSqlError:
        return None


def test_texts_are_cut_as_sparks_lexer_cuts_them(spark: SparkSession):
    chance = random.Random(4)  # noqa: S311 - which texts are tried
    texts = ["".join(chance.choices(PIECES, k=chance.randint(1, 9))) for _ in range(600)]
    assert {text: ours(text) for text in texts} == {text: of_spark(spark, text) for text in texts}
    assert sum(ours(text) is not None for text in texts) > 100
