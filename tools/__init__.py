"""The agent's tools: one file each, described by their own signatures, run in one place."""

from __future__ import annotations
