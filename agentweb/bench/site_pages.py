"""Pages and exports of a site as their readers get them, for comparison with those of a copy.

Run as a process in the site's environment: `python -m agentweb.bench.site_pages 200 SEED` prints
the digest of each, by its address, of so many conversations, of their owners' lists and of the
tables of the staff.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

#: What is new each time a page is read, or of the session.
_TOKENS = re.compile(
    r'(csrfmiddlewaretoken" value|client_id" value|data-token|nonce)="[^"]*"|"X-CSRFToken": "\w+"'
)
#: The key of what the ledger does not agree with.
LEDGER = "ledger"
_LISTS = ("/search/?q=naïve", "/files/", "/trash/", "/c/list/")
_OF_CHAT = ("/c/{}/", "/c/{}/export.json", "/c/{}/export.md")
_OF_STAFF = (
    "conversation", "transformation", "apicall", "turn", "toolcall", "budgetwindow", "ledgerentry",
    "reservation", "moneyrecord",
)  # fmt: skip


def read_pages(chats: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Yield pages and exports of these conversations and of everybody's lists, by address."""
    from conversations.models import Conversation, User

    wanted = set(chats)
    for user in User.objects.order_by("pk"):
        own = Conversation.objects.filter(owner=user).values_list("pk", "public_id").order_by("pk")
        paths = [*_LISTS]
        paths += [path.format(key) for at, key in own if at in wanted for path in _OF_CHAT]
        yield from _read(user, paths)


def read_staff_pages() -> Iterator[tuple[str, str]]:
    """Yield the tables as a new person with all rights reads them."""
    from conversations.models import User

    staff = User.objects.create(username="reader", is_staff=True, is_superuser=True)
    yield from _read(staff, [f"/admin/conversations/{name}/" for name in _OF_STAFF])


def _read(user: object, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    from django.test import Client

    client = Client(SERVER_NAME="localhost")
    client.force_login(user)  # type: ignore[arg-type]  # a User, which is imported late
    for path in paths:
        answer = client.get(path, follow=True)
        text = _TOKENS.sub("", b"".join(answer).decode())
        # Behind it are prices of the moment.
        text = text.partition('<p id="next-price"')[0]
        yield f"{user} {path}", f"{answer.status_code}\n{text}"


def digest_pages(count: int, seed: int) -> dict[str, Any]:
    """Return the digests of the pages of so many conversations, drawn by the seed.

    Under `LEDGER` is what `manage.py ledger` names.
    """
    from conversations.budgets.reconciliation import check_windows
    from conversations.models import Conversation

    keys = list(Conversation.objects.order_by("pk").values_list("pk", flat=True))
    chats = random.Random(seed).sample(keys, min(count, len(keys)))  # noqa: S311 - a sample
    found = (*read_pages(chats), *read_staff_pages())
    digests = {path: hashlib.sha256(text.encode()).hexdigest() for path, text in found}
    return digests | {LEDGER: [str(problem) for problem in check_windows()]}


if __name__ == "__main__":
    import django

    django.setup()
    sys.stdout.write(json.dumps(digest_pages(*map(int, sys.argv[1:]))) + "\n")
