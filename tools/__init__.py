"""The tools of the agent: one file each; the packages are helpers (README.md)."""

from __future__ import annotations
