"""What is stored of the answers of a server under test, to compare what was shown with.

Run as a process in that server's environment with the ids of conversations as a JSON list on its
input: `python -m agentweb.bench.stored_answers 60` waits so many seconds at most until no turn of
them runs any more, and prints the stamps of each, in their order.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence

from agentweb.bench.shown_page import STAMP

#: Seconds between two looks.
_PAUSE = 0.5


def read_stored_stamps(chats: Sequence[str], seconds: float) -> dict[str, list[str]]:
    """Give the stamps of the answers by conversation, once they have ended."""
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
