"""A constant of an author's, in a module of its own."""

from __future__ import annotations

LONGEST = 2
