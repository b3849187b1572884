"""Automation: what the sensor does about a model's missing cells."""

from __future__ import annotations

from enum import StrEnum


class Automation(StrEnum):
    """What the sensor does when a model needs work.

    Plans that somebody queues are released whatever this says.

    Attributes:
        ON: release it.
        REPORT: only say so.
        OFF: not even look.
    """

    ON = "on"
    REPORT = "report"
    OFF = "off"
