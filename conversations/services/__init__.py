"""Writes: keyword-only functions, each one transaction, announced after commit."""

from __future__ import annotations
