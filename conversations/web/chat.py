"""The chat page and its forms' posts. What a person may not see is a 404, as if absent."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from uuid import UUID, uuid4

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST, require_safe

from conversations.accounts.preferences import read_preferences
from conversations.agent.events import QueueChanged
from conversations.budgets.notices import find_conversation_limits, find_limits
from conversations.conf import conf
from conversations.files.attachments import AttachmentError, drop_unsent, store_uploads
from conversations.library.access import (
    find_live_turn,
    find_newest,
    load_owned_conversation,
    was_sent,
)
from conversations.library.folders import find_folder, open_folder
from conversations.library.shared_links import is_shared
from conversations.live.publish import announce
from conversations.log.settings_version import reading_settings
from conversations.reductions.model_choice import read_choice_of
from conversations.reductions.original_state import read_original_state
from conversations.reductions.reduction_page import read_reduction as reduction_of
from conversations.runtime import dispatch
from conversations.toolbox.egress import read_egress_rule
from conversations.toolbox.tool_list import list_usable_tools
from conversations.toolbox.toolset import offers_search
from conversations.transcript import meter as meters
from conversations.transcript import paging, queue, transcript
from conversations.transcript.originals import list_original_images, read_original
from conversations.transcript.shapes import Bookmark, Transcript
from conversations.transcript.words import explain_not_sent
from conversations.turns import turns as services
from conversations.turns.prompts import SendError
from conversations.turns.queue import is_waiting
from conversations.web.conversation_settings import read_requested_choice
from conversations.web.forms.chat import PromptForm, StartForm, describe_error
from conversations.web.page_shell import build_page_context, refuse_post
from conversations.web.responses import answer_post, redirect_post, require_user

if TYPE_CHECKING:
    from conversations.models import Conversation, Folder, Turn


@login_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    found = find_newest(require_user(request))
    return redirect("new_chat") if found is None else redirect("chat", found.public_id)


@login_required
@require_safe
def new_chat(request: HttpRequest) -> HttpResponse:
    """An empty chat, which is to be temporary or in a folder where the address says so."""
    return render(request, "conversations/chat.html", _build_page(request, None))


@login_required
@require_safe
def chat(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """The chat: its newest turns, those `before` or `after` one, or those around message `m`."""
    conversation = load_owned_conversation(require_user(request), public_id)
    page = paging.read_requested_page(conversation, request.GET)
    if page is not None and request.htmx:  # type: ignore[attr-defined]
        context = {"conversation": conversation, "transcript": page}
        return render(request, "conversations/_partials/earlier.html", context)
    return render(request, "conversations/chat.html", _build_page(request, conversation, page))


def _build_page(
    request: HttpRequest, conversation: Conversation | None, page: Transcript | None = None
) -> dict[str, object]:
    user = require_user(request)
    chosen = read_preferences(user.preferences)
    choice = read_choice_of(conversation) if conversation else read_requested_choice(request)
    context = build_page_context(request, conversation) | {
        "conversation": conversation,
        "choice": choice,
        "tools": [] if conversation else list_usable_tools(user.pk),
        "can_review": user.is_staff,
        "example_prompts": EXAMPLES,
        "bookmark": Bookmark(),
        "client_id": uuid4(),
        "draft": request.GET.get("prompt", ""),
        "egress": read_egress_rule(user.pk, conversation),
    }
    away = chosen.put_away
    if conversation is None:
        context["limits"] = find_limits(user.pk, choice.model, put_away=away)
        return context | _read_temporary(request) | {"folder": _read_folder(request)}
    read = transcript.read_transcript
    page = paging.complete_page(conversation, page) if page else read(conversation)
    ended, running, bookmark = paging.split_running(conversation, page)
    meter = meters.read_meter(conversation, has_next=not any(turn.is_live for turn in running))
    return context | {
        "trash_days": conf.trash_days,
        "is_shared": is_shared(conversation),
        "transcript": ended,
        "live_turns": running,
        # What waits for an answer to a question changes by a new version only. Naming the version
        # spares the page a snapshot, which would replace the question's buttons under the pointer.
        "is_complete": all(turn.state == "approval_wait" for turn in running),
        "bookmark": bookmark,
        "queue": queue.read_queue(conversation),
        "meter": meter,
        "limits": find_conversation_limits(
            conversation, searches=offers_search, tokens=lambda: meter.sent_tokens, put_away=away
        ),
    }


def _read_temporary(request: HttpRequest) -> dict[str, object]:
    """Return whether temporary chats can be started, and whether this new one is to be."""
    wanted = request.POST.get("is_temporary") or request.GET.get("temporary")
    hours = conf.temporary_hours
    return {"temporary_hours": hours, "is_temporary": bool(wanted) and hours > 0}


def _read_folder(request: HttpRequest) -> Folder | None:
    """Return the folder that this new chat is to be in; raises Http404 for one not of the user."""
    wanted = request.GET.get("folder", request.POST.get("folder", ""))
    try:
        return find_folder(require_user(request), UUID(wanted)) if wanted else None
    except (Http404, ValueError) as error:
        if request.method == "POST":
            # A refused message is shown again, which counts more than where it was to be.
            return None
        raise Http404("no such folder") from error


EXAMPLES = (
    _("List the files in my workspace"),
    _("Write a file ideas.md with three ideas for a weekend project"),
    _("What time is it in Tokyo?"),
)


@login_required
@require_POST
def start(request: HttpRequest) -> HttpResponse:
    """Start a conversation with its first message; a repeated post finds the conversation."""
    user = require_user(request)
    form = StartForm(user.pk, request.POST)
    if not form.is_valid():
        return _refuse_start(request, describe_error(form))
    stop = find_limits(user.pk, form.cleaned_data["model"] or conf.model).stop
    if stop is not None and not was_sent(user, form.cleaned_data["client_id"]):
        return _refuse_start(request, explain_not_sent(stop.rule.period, stop.rule.model_name), 409)
    try:
        files = _store_files(request, form)
        turn = services.start_conversation(
            owner_id=user.pk,
            model=form.cleaned_data["model"] or conf.model,
            effort=form.cleaned_data["effort"],
            is_temporary=form.cleaned_data["is_temporary"],
            folder=form.cleaned_data["folder"],
            text=form.cleaned_data["text"],
            client_id=form.cleaned_data["client_id"],
            attachments=files,
        )
    except (SendError, AttachmentError) as error:
        return _refuse_start(request, error.text)
    _drop_repeated(request, files)
    if turn.conversation.folder is not None:
        open_folder(folder=turn.conversation.folder, is_open=True)
    dispatch.wake_turn(turn)
    return redirect_post(request, reverse("chat", args=[turn.conversation.public_id]))


def _refuse_start(request: HttpRequest, text: str, status: int = 400) -> HttpResponse:
    if request.htmx:  # type: ignore[attr-defined]
        page = "conversations/_partials/send_error.html"
        return render(request, page, {"error": text}, status=status)
    context = _build_page(request, None) | {"error": text, "draft": request.POST.get("text", "")}
    return render(request, "conversations/chat.html", context, status=status)


@login_required
@require_POST
@reading_settings()
def send(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Store a message; its answer arrives by the socket. While another answer runs, queue it."""
    conversation = load_owned_conversation(require_user(request), public_id)
    form = PromptForm(request.POST)
    if not form.is_valid():
        return refuse_post(request, conversation, describe_error(form))
    stop = find_conversation_limits(conversation, searches=offers_search).stop
    if stop is not None and not was_sent(conversation.owner, form.cleaned_data["client_id"]):
        return refuse_post(
            request, conversation, explain_not_sent(stop.rule.period, stop.rule.model_name), 409
        )
    try:
        files = _store_files(request, form)
        fields = form.cleaned_data | {"attachments": files}
        sent = services.send_prompt(conversation=conversation, **fields)
    except (SendError, AttachmentError) as error:
        status = 409 if error.code == "queue_full" else 400
        return refuse_post(request, conversation, error.text, status)
    _drop_repeated(request, files)
    if is_waiting(sent):
        async_to_sync(announce)(conversation.pk, QueueChanged())
    else:
        dispatch.wake_turn(cast("Turn", sent))
    return answer_post(request, conversation)


def _store_files(request: HttpRequest, form: PromptForm) -> list[UUID]:
    """Store the files that come with a form, and return the ids of all files of the message."""
    brought = request.FILES.getlist("files")
    kept = store_uploads(owner_id=require_user(request).pk, files=brought) if brought else []
    return [*form.cleaned_data["attachments"], *kept]


def _drop_repeated(request: HttpRequest, files: list[UUID]) -> None:
    """Remove the files that a repeated form brought again: those of its first post were sent."""
    if request.FILES:
        drop_unsent(owner_id=require_user(request).pk, ids=files)


@login_required
@require_POST
def stop(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Request a stop of the running turn; no effect on a turn that has ended.

    The form's `turn` is the number of the turn that the button was shown with: another one may have
    begun since. Without it the running turn is stopped.
    """
    conversation = load_owned_conversation(require_user(request), public_id)
    turn = find_live_turn(conversation)
    if turn is not None and request.POST.get("turn", "") in ("", str(turn.number)):
        services.request_stop(turn=turn)
        dispatch.stop_turn(turn)
    return answer_post(request, conversation)


@login_required
@require_safe
def reduction(request: HttpRequest, public_id: UUID, seq: int) -> HttpResponse:
    conversation = load_owned_conversation(require_user(request), public_id)
    context = {"conversation": conversation, "reduction": reduction_of(conversation, seq)}
    context |= build_page_context(request, conversation)
    return render(request, "conversations/reduction.html", context)


@login_required
@require_safe
def tool_output(request: HttpRequest, public_id: UUID, id: str) -> HttpResponse:
    """Show a whole tool result as text."""
    conversation = load_owned_conversation(require_user(request), public_id)
    output = read_original(conversation.pk, id)
    if output is None:
        raise Http404("no such tool call")
    context = {
        "conversation": conversation, "id": id, "output": output,
        "images": list_original_images(conversation.pk, id),
        "standing": read_original_state(conversation, id),
    }  # fmt: skip
    context |= build_page_context(request, conversation)
    return render(request, "conversations/output.html", context)
