"""`manage.py doctor`: all that a self-hoster can get wrong, each line with what to change."""

from __future__ import annotations
