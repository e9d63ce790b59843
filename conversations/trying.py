"""The policy lab of a conversation: what would another policy have done?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from conversations.queries.conversations import conversation_for
from conversations.queries.trials import TrialError, length_of, subject_of
from conversations.trial_table import rows
from conversations.trials import trials
from conversations.views import person

if TYPE_CHECKING:
    from conversations.models import Conversation


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Show the trial of the conversation, or begin one."""
    user = person(request)
    conversation = conversation_for(user, public_id)
    problem = ""
    if request.method == "POST":
        problem = begin(user.pk, conversation)
        if not problem:
            return redirect("lab", conversation.public_id)
    context = shown(user.pk, conversation) | {"problem": problem}
    if request.htmx and not problem:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/trial.html", context)
    return render(request, "conversations/lab.html", context, status=409 if problem else 200)


def begin(user_id: int, conversation: Conversation) -> str:
    """Begin a trial; give what stands against it, "" when it runs."""
    try:
        # Before anything is built: many requests at once must not each hold a long conversation.
        trials.admit(user_id, length_of(conversation))
        subject = subject_of(conversation)
        trials.start(user_id, conversation.pk, conversation.head, subject)
    except TrialError as error:
        return str(error)
    return ""


def shown(user_id: int, conversation: Conversation) -> dict[str, Any]:
    """Give what the page shows of the person's trial."""
    trial = trials.of(user_id, conversation.pk)
    if trial is None:
        return {"conversation": conversation, "trial": None}
    reports = [*([trial.actual] if trial.actual else []), *trial.reports]
    return {
        "conversation": conversation,
        "trial": trial,
        "done": len(trial.reports),
        "is_old": trial.head != conversation.head,
        "names": [report.policy for report in reports],
        "own": trial.own,
        "rows": rows(reports),
    }
