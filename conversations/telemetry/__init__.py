"""What a running site tells of itself: ids of log lines, metrics, spans. No content, no secrets."""

from __future__ import annotations
