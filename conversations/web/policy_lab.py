"""The policy lab of a conversation: what another policy would have done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from conversations.lab.report import Report
from conversations.library.access import load_owned_conversation
from conversations.reductions.trial_subject import TrialError, build_subject, count_bytes
from conversations.reductions.words import name_preset
from conversations.rendering.numbers import dollars
from conversations.rendering.numbers import write_number as write
from conversations.web.page_shell import build_page_context
from conversations.web.responses import require_user
from conversations.web.shared_trials import trials

if TYPE_CHECKING:
    from conversations.models import Conversation


@dataclass(frozen=True, slots=True)
class Row:
    """One row; `is_part`: a share of the row above; `best`: indexes of the cheapest cells."""

    name: str
    cells: tuple[str, ...]
    is_part: bool = False
    best: tuple[int, ...] = ()


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Show the trial of the conversation, or start one."""
    user = require_user(request)
    conversation = load_owned_conversation(user, public_id)
    problem = ""
    if request.method == "POST":
        problem = start_trial(user.pk, conversation)
        if not problem:
            return redirect("lab", conversation.public_id)
    context = build_context(user.pk, conversation) | {"problem": problem}
    if request.htmx and not problem:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/trial.html", context)
    context |= build_page_context(request, conversation)
    return render(request, "conversations/policy_lab.html", context, status=409 if problem else 200)


def start_trial(user_id: int, conversation: Conversation) -> str:
    """Start a trial; return why it cannot be started, "" when it runs."""
    try:
        # Checked first, so that many requests at once do not each load a long conversation.
        trials.admit(user_id, count_bytes(conversation))
        subject = build_subject(conversation)
        trials.start(user_id, conversation.pk, conversation.head, subject)
    except TrialError as error:
        return str(error)
    return ""


def build_context(user_id: int, conversation: Conversation) -> dict[str, Any]:
    """Return the template context of the person's trial."""
    trial = trials.of(user_id, conversation.pk)
    if trial is None:
        return {"conversation": conversation, "trial": None}
    reports = [*([trial.actual] if trial.actual else []), *trial.reports]
    return {
        "conversation": conversation,
        "trial": trial,
        "done": len(trial.reports),
        "is_old": trial.head != conversation.head,
        "names": [name_preset(report.policy) for report in reports],
        "own": name_preset(trial.own),
        "rows": compare_reports(reports),
    }


def compare_reports(reports: Sequence[Report]) -> list[Row]:
    """Return the reports side by side, one column each."""
    if not reports:
        return []
    kinds = sorted({kind for report in reports for kind in report.applied})
    costs = [report.total_cost for report in reports]
    cheapest = tuple(at for at, cost in enumerate(costs) if cost == min(costs) < max(costs))
    return [
        _build_row(_("Calls"), reports, lambda r: write(r.calls)),
        _build_row(_("Turns ended for want of room"), reports, lambda r: write(r.ended)),
        _build_row(_("Largest request, tokens"), reports, lambda r: write(r.peak)),
        _build_row(_("Input tokens"), reports, lambda r: write(r.tokens.input)),
        _build_row(_("read from the cache"), reports, lambda r: write(r.tokens.read), is_part=True),
        _build_row(
            _("written to the cache"),
            reports,
            lambda r: write(r.tokens.written),
            is_part=True,
        ),
        Row(_("Cost"), tuple(map(dollars, costs)), best=cheapest),
        _build_row(_("of it summaries"), reports, lambda r: dollars(r.summary_cost), is_part=True),
        _build_row(_("Cost without a cache"), reports, lambda r: dollars(r.cost_uncached)),
        _build_row(_("Changes of the context"), reports, lambda r: write(sum(r.applied.values()))),
        *(_build_row(kind, reports, _count_applied(kind), is_part=True) for kind in kinds),
        _build_row(_("Tokens freed"), reports, lambda r: write(r.freed)),
        _build_row(_("Rules of the API broken"), reports, lambda r: write(len(r.violations))),
    ]


def _build_row(
    name: str, reports: Sequence[Report], show: Callable[[Report], str], *, is_part: bool = False
) -> Row:
    return Row(name, tuple(map(show, reports)), is_part)


def _count_applied(kind: str) -> Callable[[Report], str]:
    return lambda report: write(report.applied[kind])
