"""The statements of the sheet on the Messages API, each with its tests."""

from __future__ import annotations

from tests.emulator.sheet import context, corrections, endpoints, messages, rest
from tests.emulator.sheet.statement import SECTIONS, Statement

__all__ = ["SECTIONS", "STATEMENTS", "Statement"]

STATEMENTS: tuple[Statement, ...] = (
    *endpoints.STATEMENTS,
    *messages.STATEMENTS,
    *context.STATEMENTS,
    *rest.STATEMENTS,
    *corrections.STATEMENTS,
)
