"""Leftovers of erased rows: removing them from the database's files, and searching for them."""

from __future__ import annotations
