"""The root of every error that this project raises on purpose."""

from __future__ import annotations


class BackfillAssetsError(Exception):
    """Say what was found, what was expected and what to do.

    One subclass per cause, declared where it is raised, facts as attributes. The CLI prints the
    message without a traceback and exits with `exit_code`.
    """

    exit_code = 1
