"""Telemetry of a running site: ids in log lines, metrics, spans. No content, no secrets."""

from __future__ import annotations
