"""The choices for what the sensor does about a model's missing cells."""

from __future__ import annotations

from enum import StrEnum


class Automation(StrEnum):
    """What the sensor does when a model needs work.

    Queued plans are released whatever this setting is.

    Attributes:
        ON: release it.
        REPORT: only say so.
        OFF: neither release nor report it.
    """

    ON = "on"
    REPORT = "report"
    OFF = "off"
