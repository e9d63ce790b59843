"""Backups: the database at one moment, with the files and the anchors of that moment."""

from __future__ import annotations
