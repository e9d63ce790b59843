"""Requests that no person waits for: a context summary, a title."""

from __future__ import annotations

import re

from agentweb.emulator.scenes.view import Request

_SUMMARY_ORDER = re.compile(
    r"summari[sz]e\s+(?:the|this)\s+conversation|\[CONTEXT SUMMARY\]", re.IGNORECASE
)
_TITLE_ORDER = re.compile(r"title for (?:the|this) conversation", re.IGNORECASE)
#: An order stands at an end of the last message, the transcript between the ends.
_EDGE = 800


def wants_summary(request: Request) -> bool:
    """A summary is asked for without tools, in the system prompt or at either end of the last
    message.
    """
    if request.tools:
        return False
    if _SUMMARY_ORDER.search(request.system):
        return True
    words = request.prompt
    order = re.compile(r"summari[sz]e\s+(?:the|this)\s+conversation", re.IGNORECASE)
    return bool(order.search(words[:_EDGE]) or order.search(words[-_EDGE:]))


def wants_title(request: Request) -> bool:
    return bool(_TITLE_ORDER.search(request.system))


def is_background(request: Request) -> bool:
    return wants_title(request) or wants_summary(request)
