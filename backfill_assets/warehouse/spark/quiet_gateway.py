"""Silence the traceback that py4j logs, beside the exception that it raises, for a lost driver.

The exception becomes an error of ours, with its cause. The traceback, which py4j sends to the root
logger, adds nothing to it; it is kept at the DEBUG level of our logs.
"""

from __future__ import annotations

import logging
from pathlib import PurePath

_log = logging.getLogger(__name__)
_LOGGERS = ("", "py4j.clientserver", "py4j.java_gateway")


def quiet_gateway() -> None:
    """Let py4j write no traceback for a lost connection; a second call has no effect."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_worth_logging)


def _is_worth_logging(record: logging.LogRecord) -> bool:
    raised = record.exc_info[1] if record.exc_info else None
    if "py4j" not in PurePath(record.pathname).parts or not _is_lost(raised):
        return True
    _log.debug("py4j: %s", record.getMessage(), exc_info=record.exc_info)
    return False


def _is_lost(raised: BaseException | None) -> bool:
    return isinstance(raised, OSError) or type(raised).__name__ == "Py4JNetworkError"
