"""The root of every error that this project raises on purpose."""

from __future__ import annotations


class BackfillAssetsError(Exception):
    """Say what was found, what was expected and what to do.

    One subclass per cause, declared where it is raised, facts as attributes. The CLI prints the
    message without a traceback and exits with `exit_code`.
    """

    exit_code = 1


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
