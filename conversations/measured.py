"""What an answer says of the size of its request."""

from __future__ import annotations

from conversations.answer import Answer
from conversations.context.gauge import Report, anchored
from conversations.context.pipeline import Prepared
from conversations.context.view import View
from conversations.ports import logger


def report_of(answer: Answer, view: View, overhead: int) -> Report | None:
    """Anchor the gauge on what this answer reported; None when it reported nothing."""
    usage = answer.usage
    if usage is None or not usage.context:
        return None
    report = Report(usage.uncleared + usage.output, view.tokens, overhead, view.edits)
    return anchored(report, view.messages[-1])


def compare(prepared: Prepared, answer: Answer) -> None:
    """Say in the log when the API cleared something else than what was expected and recorded."""
    cleared = answer.usage.cleared_uses if answer.usage else 0
    if cleared != len(prepared.cleared):
        logger.warning(
            "the API cleared %s tool results, expected were %s", cleared, len(prepared.cleared)
        )
