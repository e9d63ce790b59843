"""The buttons of originals and changes: pin, unpin, restore, undo."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from conversations.library.access import load_owned_conversation
from conversations.reductions.manual_changes import undo_change
from conversations.reductions.pins import pin_originals, unpin_originals
from conversations.reductions.reduction_page import load_transformation
from conversations.reductions.removed_originals import is_manual, list_removed
from conversations.reductions.shapes import PinState
from conversations.web.reduction_replies import answer_original_change, make_manual_change
from conversations.web.responses import require_user


@login_required
@require_POST
def pin(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Pin one original, and restore what was removed of it."""
    return answer_original_change(request, public_id, pin_originals, PinState("", is_pinned=True))


@login_required
@require_POST
def unpin(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Unpin an original, so that the next reduction may take it."""
    return answer_original_change(request, public_id, unpin_originals, PinState(""))


@login_required
@require_POST
def restore(request: HttpRequest, public_id: UUID, seq: int) -> HttpResponse:
    """Pin and restore everything that a transformation removed."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    names = list_removed(conversation, load_transformation(conversation, seq))
    return make_manual_change(
        request,
        conversation,
        lambda: pin_originals(conversation_id=conversation.pk, actor_id=user.pk, ids=names),
    )


@login_required
@require_POST
def undo(request: HttpRequest, public_id: UUID, seq: int) -> HttpResponse:
    """Undo a person's change."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    if not is_manual(load_transformation(conversation, seq)):
        raise Http404("no change by hand")
    return make_manual_change(
        request,
        conversation,
        lambda: undo_change(conversation_id=conversation.pk, actor_id=user.pk, seq=seq),
    )
