"""Manual reductions: preview and confirm, exclude and include, request and edit a summary.

A confirmation carries the digest of the previewed body; when the change would make another body, it
is refused with the new preview.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from conversations.library.access import load_owned_conversation
from conversations.reductions import manual_changes, proposals
from conversations.reductions.in_full import CHOICES, choose_in_full
from conversations.reductions.preview import WANTED, build_offer
from conversations.reductions.record_change import ManualChangeError
from conversations.reductions.reduction_page import read_reduction
from conversations.reductions.shapes import PinState
from conversations.runtime import dispatch
from conversations.web.page_shell import build_page_context
from conversations.web.reduction_replies import (
    answer_click,
    answer_original_change,
    publish_change,
    refuse_change,
)
from conversations.web.responses import redirect_post, require_user

if TYPE_CHECKING:
    from conversations.models import Conversation


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def preview(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Preview one choice; a POST makes exactly the previewed change."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    wanted = request.POST.get("want") or request.GET.get("want", "")
    wanted = wanted if wanted in WANTED else WANTED[0]
    if request.method != "POST":
        return _render_preview(request, conversation, wanted)
    digest = request.POST.get("digest", "")
    try:
        if wanted == "summary":
            row = proposals.apply_proposal(
                conversation_id=conversation.pk, actor_id=user.pk, digest=digest
            )
        else:
            row = manual_changes.compact_now(
                conversation_id=conversation.pk,
                actor_id=user.pk,
                wanted=cast("Literal['results', 'turns']", wanted),
                digest=digest,
            )
    except ManualChangeError as error:
        return _render_preview(request, conversation, wanted, error.text)
    publish_change(conversation, row)
    return redirect("reduction", conversation.public_id, row.seq)


@login_required
@require_POST
def compact(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Shorten old tool results by one click; where none is left, offer a summary."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    try:
        row = manual_changes.compact_now(
            conversation_id=conversation.pk, actor_id=user.pk, wanted="results", digest=None
        )
    except ManualChangeError as error:
        if error.code == "nothing":
            return redirect_post(request, f"{reverse('compact', args=[public_id])}?want=summary")
        return refuse_change(request, conversation, error)
    publish_change(conversation, row)
    return answer_click(request, conversation)


@login_required
@require_POST
def choose_full(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Choose what is sent in full: the next message, all, or none."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    wanted = request.POST.get("choice")
    choice = next((each for each in CHOICES if each == wanted), None)
    if choice is None:
        raise BadRequest("no such choice")
    try:
        row = choose_in_full(conversation_id=conversation.pk, actor_id=user.pk, choice=choice)
    except ManualChangeError as error:
        return refuse_change(request, conversation, error)
    publish_change(conversation, row)
    return answer_click(request, conversation)


def _render_preview(
    request: HttpRequest, conversation: Conversation, wanted: str, error: str = ""
) -> HttpResponse:
    conversation.refresh_from_db()
    context = {
        "conversation": conversation,
        "offer": build_offer(conversation, wanted),
        "error": error,
    }
    if not request.htmx:  # type: ignore[attr-defined]
        context |= build_page_context(request, conversation)
    page = "conversations/compact.html"
    return render(request, page, context, status=409 if error else 200)


@login_required
@require_POST
def ask(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Request a summary from the model; a repeated post makes one request."""
    return _request_summary(request, public_id, 0)


@login_required
@require_POST
def rewrite(request: HttpRequest, public_id: UUID, seq: int) -> HttpResponse:
    """Request another wording of a summary from the model, over the same messages."""
    return _request_summary(request, public_id, seq)


def _request_summary(request: HttpRequest, public_id: UUID, target: int) -> HttpResponse:
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    try:
        key, is_new = proposals.request_summary(
            conversation_id=conversation.pk, actor_id=user.pk, target=target
        )
    except ManualChangeError as error:
        return refuse_change(request, conversation, error)
    if is_new:
        dispatch.start_proposal(key)
    return _redirect_to_summary(conversation)


@login_required
@require_POST
def discard(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Discard the proposed summary."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    proposals.discard_proposal(conversation_id=conversation.pk)
    return _redirect_to_summary(conversation)


def _redirect_to_summary(conversation: Conversation) -> HttpResponse:
    page = reverse("compact", args=[conversation.public_id])
    return redirect(f"{page}?want=summary")


@login_required
@require_POST
def exclude(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Exclude one original from requests."""
    keep = PinState("", is_left_out=True)
    return answer_original_change(
        request, public_id, manual_changes.exclude_originals, keep, part="left_out"
    )


@login_required
@require_POST
def include(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Include an excluded original again."""
    return answer_original_change(
        request, public_id, manual_changes.include_originals, PinState(""), part="left_out"
    )


@login_required
@require_POST
def edit(request: HttpRequest, public_id: UUID, seq: int) -> HttpResponse:
    """Store a person's wording of a summary."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    text = request.POST.get("text", "").replace("\r\n", "\n")
    try:
        row = manual_changes.edit_summary(
            conversation_id=conversation.pk, actor_id=user.pk, seq=seq, text=text
        )
    except ManualChangeError as error:
        # Show the refused text in its field again.
        context = {
            "conversation": conversation,
            "reduction": read_reduction(conversation, seq),
            "draft": text,
            "error": error.text,
        }
        context |= build_page_context(request, conversation)
        return render(request, "conversations/reduction.html", context, status=409)
    publish_change(conversation, row)
    return redirect("reduction", conversation.public_id, row.seq if row is not None else seq)
