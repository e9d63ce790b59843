"""Checks that a conversation continues after its history was broken."""

from __future__ import annotations

import re
from typing import Any

from conversations.audit.verify import Problem
from conversations.db import run_db
from conversations.log.fold_cache import fold_cache
from conversations.models import ApiCall, ApiResult, Transformation, Turn
from tests.faults.running_app import Chat, reductions
from tests.web.fold import parsed

#: Protocol terms that people who read a conversation should not need to know.
PROTOCOL = re.compile(
    r"(?<!code )block|index|tool_use|tool_result|messages\.|content\.|signature|protocol"
)
STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
#: Pages for everybody; the record of a call is for those who know the API.
FOR_ALL = ("", "inspect/", "inspect/now/", "export.html")


async def talk(chat: Chat) -> None:
    for words in ("Write the file plan.md with content: buy milk", "List files", "Hello"):
        assert (await chat.say(words)).state == "done"


def last_call() -> int:
    return ApiCall.objects.latest("pk").pk


def is_of_call_after(problem: Problem, before: int) -> bool:
    return problem.table == "apicall" and problem.id.isdigit() and int(problem.id) > before


def forget_fold(chat: Chat) -> None:
    """Have the next turn read what is stored, as in another process."""
    fold_cache.take(chat.conversation.public_id)


async def check_going_on(
    chat: Chat, *, repairs: int, kind: str = "repair", refused: int = 0
) -> None:
    """Check that three turns are answered, with `repairs` changes before the first and no more.

    `refused` is the total number of requests that the API refused.
    """
    forget_fold(chat)
    for words in ("Go on then", "List files", "And once more"):
        turn = await chat.say(words)
        assert (turn.state, turn.error_text) == ("done", "")
        found = [row for row in await run_db(reductions, chat) if row[0] == kind]
        assert found == [(kind, "applied")] * repairs, found
    said = await run_db(lambda: list(ApiResult.objects.exclude(error_message="")))
    assert len(said) == refused, [row.error_message for row in said]
    note = (await run_db(lambda: Transformation.objects.filter(kind=kind).latest("pk"))).note
    number = (
        await run_db(lambda: Turn.objects.filter(conversation=chat.conversation).latest("pk"))
    ).number
    shown = " ".join(chat.text(number - 2).split())
    assert note in shown
    assert not PROTOCOL.search(note)
    assert await run_db(lambda: ApiCall.objects.filter(result=None).count()) == 0


def read_body(answer: Any) -> str:
    """Return the HTML of a page without its style sheets."""
    parts = answer.streaming_content if answer.streaming else [answer.content]
    return STYLE.sub("", b"".join(parts).decode())


async def check_pages(chat: Chat) -> None:
    """Open every page about the conversation; those for everybody use no protocol terms."""
    place = f"/c/{chat.conversation.public_id}/"
    rows = chat.conversation.transformations.values_list("seq", flat=True)
    changes = [f"inspect/events/{seq}/" for seq in await run_db(lambda: list(rows))]
    calls = await run_db(lambda: ApiCall.objects.filter(conversation=chat.conversation).count())
    pages = ("", "inspect/", "inspect/now/", "export.md", "export.json", "export.html", "largest/")
    for path in (*pages, *changes, *[f"inspect/calls/{calls}/"] * bool(calls)):
        answer = await run_db(chat.client.get, place + path)
        assert answer.status_code == 200, place + path
        if path in FOR_ALL:
            words = parsed(await run_db(read_body, answer)).text
            found = PROTOCOL.search(words)
            assert not found, (path, words[found.start() - 60 : found.end() + 60])
