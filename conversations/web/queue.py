"""The posts of queued messages: send the first one now, or withdraw one.

The change arrives by the socket, in this tab as in all others.
"""

from __future__ import annotations

from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from conversations.agent.events import QueueChanged
from conversations.library.access import load_owned_conversation
from conversations.live.publish import announce
from conversations.runtime import dispatch
from conversations.turns.prompts import SendError
from conversations.turns.queue import send_next_prompt, withdraw_prompt
from conversations.web.page_shell import refuse_post
from conversations.web.responses import answer_post, require_user


@login_required
@require_POST
def send(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Send the first queued message; no effect if there is none."""
    conversation = load_owned_conversation(require_user(request), public_id)
    try:
        turn = send_next_prompt(conversation=conversation)
    except SendError as error:
        return refuse_post(request, conversation, error.text, 409)
    if turn is not None:
        dispatch.wake_turn(turn)
    async_to_sync(announce)(conversation.pk, QueueChanged())
    return answer_post(request, conversation)


@login_required
@require_POST
def withdraw(request: HttpRequest, public_id: UUID, client_id: UUID) -> HttpResponse:
    """Withdraw a queued message; the page may put its text into the composer."""
    conversation = load_owned_conversation(require_user(request), public_id)
    if not withdraw_prompt(conversation=conversation, client_id=client_id):
        text = _("This message is not waiting any more; it was sent or removed.")
        return refuse_post(request, conversation, text, 409)
    async_to_sync(announce)(conversation.pk, QueueChanged())
    return answer_post(request, conversation)
