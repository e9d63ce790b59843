"""The buttons that keep originals in full: pin, unpin, send in full next time, take back."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_POST

from conversations.library.access import conversation_for
from conversations.reductions.by_hand import take_back
from conversations.reductions.pins import keep_in_full, release
from conversations.reductions.reduction import transformation
from conversations.reductions.shapes import Keep
from conversations.reductions.taken_out import is_by_hand, taken
from conversations.web.reduction_replies import answered, answered_original
from conversations.web.responses import person


@login_required
@require_POST
def pin(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Keep one original in full from now on; what was reduced is put back."""
    return answered_original(request, public_id, keep_in_full, Keep("", is_pinned=True))


@login_required
@require_POST
def unpin(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Let the next reductions take an original again."""
    return answered_original(request, public_id, release, Keep(""))


@login_required
@require_POST
def restore(request: HttpRequest, public_id: UUID, seq: int) -> HttpResponse:
    """Keep everything in full that a reduction took."""
    user = person(request)
    conversation = conversation_for(user, public_id)
    names = taken(conversation, transformation(conversation, seq))
    return answered(
        request,
        conversation,
        lambda: keep_in_full(conversation_id=conversation.pk, actor_id=user.pk, ids=names),
    )


@login_required
@require_POST
def undo(request: HttpRequest, public_id: UUID, seq: int) -> HttpResponse:
    """Take a change by hand back."""
    user = person(request)
    conversation = conversation_for(user, public_id)
    if not is_by_hand(transformation(conversation, seq)):
        raise Http404("no change by hand")
    return answered(
        request,
        conversation,
        lambda: take_back(conversation_id=conversation.pk, actor_id=user.pk, seq=seq),
    )
