"""What templates may ask for."""

from __future__ import annotations
