"""The root of every error that this project raises on purpose, and those that stand for many."""

from __future__ import annotations

_LONGEST = 600
_SAYS_NOTHING = (
    "An error occurred while calling",  # what py4j begins with
    "[STAGE_MATERIALIZATION_MULTIPLE_FAILURES]",  # Spark's heading of errors that stages raised at the same time
)


class BackfillAssetsError(Exception):
    """Say what was found, what was expected and what to do.

    A cause that is caught, classified or named in the documentation is a subclass, declared where
    it is raised, facts as attributes. All others are a `DeclarationError` or a `RequestError`. The
    CLI prints the message without a traceback and exits with `exit_code`.
    """

    exit_code = 1


class _ToldError(BackfillAssetsError):
    """Put the message together from its parts.

    Args:
        found: what is wrong.
        expected: what would be right, to follow the word "expected".
        do: what to do about it; a new sentence where it begins with a capital letter.
    """

    def __init__(self, *, found: str, expected: str = "", do: str = "") -> None:
        self.found, self.expected, self.do = found, expected, do
        expectation = f"; expected {expected}" if expected else ""
        way = f"{'. ' if do[0].isupper() else '; '}{do}" if do else ""
        super().__init__(f"{found}{expectation}{way}")


class PassingError(BackfillAssetsError):
    """What is in the way passes by itself, or once a person has made room; then the same succeeds."""


class DeclarationError(_ToldError):
    """A model, a source, a consumer, the catalog or a setting is declared wrongly."""


class RequestError(_ToldError):
    """What was asked can't be done."""


class PrivateNameError(BackfillAssetsError):
    """A library has no longer what we use of it without a public name.

    Args:
        library: the distribution.
        found: what is missing.
        tried: the release that has it.
        where: the module that says what it is used for.
    """

    def __init__(self, library: str, found: str, *, tried: str, where: str) -> None:
        self.library, self.found, self.tried, self.where = library, found, tried, where
        super().__init__(
            f"{library}: {found}; it was there in {tried}: install {library}=={tried}, or see {where}, "
            "which says what it is for and what may take its place"
        )


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Say why a text file can't be read."""
    return getattr(error, "strerror", None) or "it is not a text file"


def one_line(error: BaseException) -> str:
    """Say an error in one line: our own explain themselves; of others, the first line that names a cause does."""
    if isinstance(error, BackfillAssetsError):
        return str(error)
    lines = [line.strip(": ") for line in str(error).splitlines()]
    telling = [line for line in lines if line and not any(each in line for each in _SAYS_NOTHING)]
    return f"{type(error).__name__}: {telling[0] if telling else 'no message'}"[:_LONGEST]
