"""Reads, named for the noun of the page; every one scoped to its owner or to staff."""

from __future__ import annotations
