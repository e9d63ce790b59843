"""The stored answers of a server under test, for comparison with what was shown.

Run as a process in that server's environment, with the ids of conversations as a JSON list on
stdin: `python -m agentweb.bench.stored_answers 60` waits at most 60 seconds until none of their
turns runs any more, and prints the time stamps in each answer, in order.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from agentweb.bench.shown_page import STAMP

#: Seconds between two polls.
_PAUSE = 0.5


def read_stored_stamps(chats: Sequence[str], seconds: float) -> dict[str, list[str]]:
    """Return the stamps of the answers by conversation, once the answers have ended."""
    from conversations.models import LIVE, Message, Turn
    from conversations.transcript.rounds import join_text

    deadline = time.monotonic() + seconds
    running = Turn.objects.filter(conversation__public_id__in=chats, state__in=LIVE)
    while running.exists() and time.monotonic() < deadline:
        time.sleep(_PAUSE)
    found: dict[str, list[str]] = {chat: [] for chat in chats}
    answers = Message.objects.filter(conversation__public_id__in=chats, kind="answer")
    rows = answers.order_by("seq").values_list("conversation__public_id", "content")
    for chat, content in rows:
        found[str(chat)] += STAMP.findall(join_text(content))
    return found


if __name__ == "__main__":
    import django

    django.setup()
    sys.stdout.write(
        json.dumps(read_stored_stamps(json.loads(sys.stdin.read()), float(sys.argv[1]))) + "\n"
    )
