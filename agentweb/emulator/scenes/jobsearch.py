"""The job search of the demonstration: a long task with tools, refined twice, then asked about.

The scene keeps no state. It writes what it needs later into its own text, as a model does. Removed
content it recalls if a stub or a summary names its id; otherwise it says that it cannot see it.
"""

from __future__ import annotations

import re

from agentweb.emulator.scenes.jobs.follow_up_questions import answer_question
from agentweb.emulator.scenes.jobs.search_state import PROMPT_FILE
from agentweb.emulator.scenes.jobs.search_steps import search, wanted_pages
from agentweb.emulator.scenes.scene import Reply
from agentweb.emulator.scenes.view import Request

_START = re.compile(
    rf"\b(?:execute|run|do|start|follow)\b[^\n]*{re.escape(PROMPT_FILE)}", re.IGNORECASE
)
_REFINE = re.compile(r"\bjobs?\b|\bremote\b|\ba day\b", re.IGNORECASE)


def job_search(request: Request) -> Reply | None:
    words = request.prompt
    if _START.search(words):
        return search(request, first=True)
    if wanted_pages(words, first=False) and _REFINE.search(words):
        return search(request, first=False)
    return answer_question(request)
