"""Backups: the database as it was at one moment, with the files and the anchors of that moment."""

from __future__ import annotations
