"""The buttons of a question: allow once, allow for this conversation, deny."""

from __future__ import annotations

from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from conversations.agent.events import TurnChanged
from conversations.library.access import load_owned_conversation
from conversations.live.publish import announce
from conversations.runtime import dispatch
from conversations.toolbox.approvals import ApprovalError, decide_approval
from conversations.web.forms.chat import DecisionForm, describe_error
from conversations.web.page_shell import refuse_post
from conversations.web.responses import answer_post, require_user

_STATUS = {"unknown": 404, "changed": 400, "decided": 409, "over": 409}


@login_required
@require_POST
def decide(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Store a decision; the turn is resumed after the last one."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        return refuse_post(request, conversation, describe_error(form))
    try:
        turn = decide_approval(conversation=conversation, actor_id=user.pk, **form.cleaned_data)
    except ApprovalError as error:
        return refuse_post(request, conversation, error.text, _STATUS[error.code])
    async_to_sync(announce)(conversation.pk, TurnChanged(turn.number))
    if turn.state == "tool_wait":
        dispatch.wake_turn(turn)
    return answer_post(request, conversation)
