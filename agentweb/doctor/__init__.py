"""`manage.py doctor`: checks an installation; each line says what is wrong and what to change."""

from __future__ import annotations
