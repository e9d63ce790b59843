"""Recognize requests that no person waits for: a context summary, a title."""

from __future__ import annotations

import re

from agentweb.emulator.scenes.view import Request, texts

_SUMMARY_ORDER = re.compile(
    r"summari[sz]e\s+(?:the|this)\s+conversation|\[CONTEXT SUMMARY\]|"
    r"compress the older part of a conversation",
    re.IGNORECASE,
)
_IN_WORDS = re.compile(
    r"summari[sz]e\s+(?:the|this)\s+conversation|write the summary now", re.IGNORECASE
)
#: The order at the end of a conversation that is to be compressed, with the tools of its requests.
_CONTINUED = "Now compress the older part of the conversation above"
_TITLE_ORDER = re.compile(r"title for (?:the|this) conversation", re.IGNORECASE)
#: Characters: instructions are at an end of the last message, the transcript is between them.
_EDGE = 800


def wants_summary(request: Request) -> bool:
    """Return whether a summary is requested.

    That is without tools, by the system prompt or at either end of the last message; with tools, by
    the last text of the last message.
    """
    last = list(texts(request.messages[-1]))
    if last and last[-1].startswith(_CONTINUED):
        return True
    if request.tools:
        return False
    if _SUMMARY_ORDER.search(request.system):
        return True
    words = request.prompt
    return bool(_IN_WORDS.search(words[:_EDGE]) or _IN_WORDS.search(words[-_EDGE:]))


def wants_title(request: Request) -> bool:
    return bool(_TITLE_ORDER.search(request.system))


def is_background(request: Request) -> bool:
    return wants_title(request) or wants_summary(request)
