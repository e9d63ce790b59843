"""A large site with its true record: some conversations that were run, and many copies of them.

Run as a process in the environment of an empty site, with `SETTINGS` and the emulator as its API:
`python -m agentweb.bench.made_site 5000 40` makes 5,000 conversations of about 40 calls. Its days
are closed and its chains anchored by the product itself; `verify` and `ledger` say that it is true.
"""

from __future__ import annotations

import json
import sys

#: Under these settings most calls are preceded by a reduction of the context.
SETTINGS = {
    "AGENTWEB_POLICY": "classic",
    "AGENTWEB_INPUT_TOKEN_BUDGET": "1",
    "AGENTWEB_TOOL_RESULT_RETENTION_CHARS": "64",
    "AGENTWEB_COMPACTION_THRESHOLD_TOKENS": "1000",
}
#: Conversations that are run, of one person each, for so many copies; calls of a turn.
_PLAYED, _EACH, _CALLS_A_TURN = 20, 50, 3
#: Conversations of a person, and days on which they talked at most.
_OF_PERSON, _DAYS = 25, 75


def make_site(conversations: int, calls: int) -> dict[str, int]:
    """Make a site of about so many conversations, and calls in each; return what it has."""
    from django.db import connection

    from agentweb.bench.copied_conversations import Copier, Original
    from agentweb.bench.own_database import make_person
    from agentweb.bench.played_conversations import play_conversations
    from conversations.audit.anchors import anchor_heads
    from conversations.budgets.usage.closed_days import close_days

    count = max(2, min(_PLAYED, conversations // _EACH))
    played = play_conversations(count, max(1, calls // _CALLS_A_TURN))
    originals = [Original.read(key) for key in played]
    people = [make_person(f"person-{at}") for at in range(1 + conversations // _OF_PERSON)]
    days = min(_DAYS, conversations)
    Copier(people).add_copies(originals, conversations - len(played), days)
    while close_days():
        pass
    anchor_heads()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return count_rows()


def count_rows() -> dict[str, int]:
    from conversations.models import ApiCall, Conversation, LedgerEntry, Message, Transformation

    kinds = (Conversation, ApiCall, Transformation, Message, LedgerEntry)
    return {str(kind._meta.model_name): kind._default_manager.count() for kind in kinds}


if __name__ == "__main__":
    import django

    django.setup()
    sys.stdout.write(json.dumps(make_site(*map(int, sys.argv[1:]))) + "\n")
