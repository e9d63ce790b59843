"""Plays the job search: a user, a workspace, a conversation, and its prompts in order."""

from __future__ import annotations

import asyncio
import secrets
import uuid
from collections.abc import Callable

from agentweb.demo.workspace import list_workspace_files
from conversations.accounts import people
from conversations.conf import conf
from conversations.db import run_db
from conversations.library.access import find_live_turn, load_conversation
from conversations.models import ApprovalRule
from conversations.runtime.adapters import workspace_for
from conversations.runtime.supervisor import supervisor
from conversations.turns import turns

NAME = "demo"


def prepare(list_url: str) -> tuple[int, str]:
    """Create the demo's user with its workspace; return its id and a new password."""
    password = secrets.token_urlsafe(9)
    user = people.save_administrator(username=NAME, password=password)
    # Nobody is present to allow each address after the prompt file was read.
    ApprovalRule.objects.update_or_create(tool="fetch_url", defaults={"rule": "allow"})
    workspace = workspace_for(user.pk)
    for name, text in list_workspace_files(list_url).items():
        workspace.write(name, text.encode())
    return user.pk, password


async def play(user_id: int, prompts: tuple[str, ...], show: Callable[[str], None]) -> None:
    """Send each prompt when the turn before it has ended; `show` gets each line of output."""
    first = await run_db(
        turns.start_conversation,
        owner_id=user_id,
        model=conf.model,
        text=prompts[0],
        client_id=uuid.uuid4(),
    )
    conversation_id = first.conversation_id
    conversation = await run_db(load_conversation, conversation_id)
    show(f"c/{conversation.public_id}/")
    supervisor.launch(first.pk)
    for prompt in prompts[1:]:
        await _ended(conversation_id)
        turn = await run_db(
            turns.send_prompt, conversation=conversation, text=prompt, client_id=uuid.uuid4()
        )
        supervisor.launch(turn.pk)
    await _ended(conversation_id)


async def _ended(conversation_id: int) -> None:
    conversation = await run_db(load_conversation, conversation_id)
    while await run_db(find_live_turn, conversation) is not None:
        await asyncio.sleep(0.25)
