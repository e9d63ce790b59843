"""A short title from the user's own words, which may be quoted as JSON."""

from __future__ import annotations

import json
import re

from agentweb.emulator.scenes.background import wants_title
from agentweb.emulator.scenes.scene import Reply, say
from agentweb.emulator.scenes.view import Request

_NOISE = re.compile(r"emulator:\S+|https?://\S+|[^\w\s.'-]")
_STOP = frozenset(
    re.findall(
        r"[a-z]+",
        "a an and are at be by can could do for from i in is it me my of on or please that "
        "the this to was we what with would you your",
    )
)
_FEWEST, _MOST = 3, 6


def name_conversation(request: Request) -> Reply | None:
    if not wants_title(request):
        return None
    first = request.prompts[0] if request.prompts else ""
    words = _NOISE.sub(" ", _unquoted(first)).split()[:60]
    telling = [word.strip(".-'") for word in words if word.lower().strip(".-'") not in _STOP]
    chosen = [word for word in telling if word][:_MOST]
    if len(chosen) < _FEWEST:
        chosen = [word.strip(".-'") for word in words[:_MOST]]
    if len(chosen) < _FEWEST:
        chosen = [*chosen, "with", "the", "emulator"][:_MOST]
    title = " ".join(chosen)
    return say(title[:1].upper() + title[1:])


def _unquoted(text: str) -> str:
    """Return the first string value of a JSON object; the text itself if it is not one."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    quoted = found.values() if isinstance(found, dict) else ()
    return next((value for value in quoted if isinstance(value, str)), text)
