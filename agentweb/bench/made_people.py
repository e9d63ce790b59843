"""People with sessions and conversations, inserted directly into the data of a server under test.

Run as a process in that server's environment: `python -m agentweb.bench.made_people 200 1` makes
200 people with one conversation each. It prints a JSON list of what each one's browser needs.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any


def make_people(count: int, chats: int = 1) -> list[dict[str, str]]:
    """Create people, each logged in and with `chats` empty conversations."""
    from uuid import uuid4

    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.db import transaction

    from agentweb.bench.own_database import make_person
    from conversations.accounts.session_ends import begin_session
    from conversations.conf import conf
    from conversations.live.socket_access import socket_token
    from conversations.models import Conversation

    store: Any = import_module(settings.SESSION_ENGINE).SessionStore
    found = []
    with transaction.atomic():
        for _ in range(count):
            user = make_person(f"load-{uuid4()}")
            session = store()
            session[SESSION_KEY] = str(user.pk)
            session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
            session[HASH_SESSION_KEY] = user.get_session_auth_hash()
            begin_session(session)
            session.create()
            known = {"session": str(session.session_key)}
            known["token"] = socket_token(session.session_key)
            for _ in range(chats):
                chat = Conversation.objects.create(owner=user, model=conf.model, title="Load")
                found.append(known | {"chat": str(chat.public_id)})
    return found


if __name__ == "__main__":
    import django

    django.setup()
    sys.stdout.write(json.dumps(make_people(*map(int, sys.argv[1:]))) + "\n")
