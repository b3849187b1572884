"""The evidence of plans, read without the project: standard library alone, neither state nor Spark."""

from __future__ import annotations
