"""py4j tells of a lost driver twice: it raises, and writes a traceback to whoever runs the process.

What is raised becomes an error of ours, with its cause. The traceback, for which py4j takes the root
logger, says nothing more; it is kept for those who ask for our logs at DEBUG.
"""

from __future__ import annotations

import logging
from pathlib import PurePath

_log = logging.getLogger(__name__)
_LOGGERS = ("", "py4j.clientserver", "py4j.java_gateway")


def quiet_gateway() -> None:
    """Let py4j write no traceback for a connection that is lost; again changes nothing."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_worth_telling)


def _is_worth_telling(record: logging.LogRecord) -> bool:
    raised = record.exc_info[1] if record.exc_info else None
    if "py4j" not in PurePath(record.pathname).parts or not _is_lost(raised):
        return True
    _log.debug("py4j: %s", record.getMessage(), exc_info=record.exc_info)
    return False


def _is_lost(raised: BaseException | None) -> bool:
    return isinstance(raised, OSError) or type(raised).__name__ == "Py4JNetworkError"
