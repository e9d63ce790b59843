"""The site moved to a database of the other kind, row by row, with the record as it is."""

from __future__ import annotations
