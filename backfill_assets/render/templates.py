"""The templates of pages beside the code that fills them; what is put into an HTML page is escaped."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def templates() -> Environment:
    """Give the templates of this package, by their path."""
    # Imported here: the verbs that write no page do not pay for it.
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape  # noqa: PLC0415

    return Environment(
        loader=PackageLoader(__name__.rpartition(".")[0], "."),
        autoescape=select_autoescape(["html.jinja"]),
        undefined=StrictUndefined,
        trim_blocks=True,
    )
