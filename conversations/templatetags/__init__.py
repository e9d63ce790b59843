"""Filters and tags for templates."""

from __future__ import annotations
