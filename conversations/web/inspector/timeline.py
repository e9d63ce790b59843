"""The inspector's first page: the timeline, the present context, the course in charts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from conversations.inspector import charts
from conversations.inspector.call_index import Spine, admin_change, call_of_answer, spine
from conversations.inspector.current_context import ahead_of, entries_of, now
from conversations.inspector.forecast import Outlook
from conversations.inspector.sent_messages import unless_damaged
from conversations.inspector.timeline import timeline
from conversations.web.inspector.access import Subject, subject

FOLDER = "conversations/inspector"


def number(value: str | None) -> int | None:
    """Read a number from an address; None when it is none."""
    return (
        int(value) if value and value.isdecimal() and value.isascii() and len(value) < 10 else None
    )


@login_required
@require_safe
def inspect(request: HttpRequest, public_id: UUID, *, is_review: bool = False) -> HttpResponse:
    """The timeline: a page, the part of it a drawer shows, or the calls before one."""
    seen = subject(request, public_id, "its calls, one by one", is_review=is_review)
    found = spine(seen.conversation)
    is_all = request.GET.get("branches") == "all"
    before = number(request.GET.get("before"))
    shown = timeline(found, before=before, is_all=is_all)
    context: dict[str, Any] = {
        "subject": seen, "conversation": seen.conversation, "timeline": shown,
        "ahead": ahead_of(seen.conversation), "is_older": before is not None,
        "is_drawer": request.GET.get("drawer") == "1",
    }  # fmt: skip
    if request.htmx:  # type: ignore[attr-defined]
        part = "drawer" if context["is_drawer"] and before is None else "_events"
        return render(request, f"{FOLDER}/{part}.html", context)
    more = _charts(seen, found, context["ahead"]) if before is None else {}
    return render(request, f"{FOLDER}/timeline.html", context | more)


def _charts(seen: Subject, found: Spine, ahead: Outlook | None) -> dict[str, object]:
    calls = [call for call in found.calls if call.is_on_path]
    changes = [change for change in found.changes if change.is_on_path]
    return {
        "sizes": charts.size(calls, changes, ahead, seen.address),
        "cached": charts.cached(calls),
        "costs": charts.cost(calls),
    }


@login_required
@require_safe
def present(request: HttpRequest, public_id: UUID, *, is_review: bool = False) -> HttpResponse:
    """What fills the context now, and what will be reduced next."""
    seen = subject(request, public_id, "what its context is made of", is_review=is_review)
    context = {"subject": seen, "conversation": seen.conversation, "now": now(seen.conversation)}
    is_brief = request.GET.get("brief") == "1"
    page = ("_now_brief" if is_brief else "_now") if request.htmx else "now"  # type: ignore[attr-defined]
    return render(request, f"{FOLDER}/{page}.html", context)


@login_required
@require_safe
def kinds(request: HttpRequest, public_id: UUID, *, is_review: bool = False) -> HttpResponse:
    """What each request was made of, as a chart."""
    seen = subject(request, public_id, "what its requests were made of", is_review=is_review)
    found = spine(seen.conversation)
    calls = [call for call in found.calls if call.is_on_path]
    chart, problem = unless_damaged(lambda: charts.kinds(entries_of(seen.conversation), calls))
    context = {
        "subject": seen, "conversation": seen.conversation, "chart": chart, "problem": problem,
    }  # fmt: skip
    page = "_kinds" if request.htmx else "kinds"  # type: ignore[attr-defined]
    return render(request, f"{FOLDER}/{page}.html", context)


@login_required
@require_safe
def answer(
    request: HttpRequest, public_id: UUID, seq: int, *, is_review: bool = False
) -> HttpResponse:
    """Lead from an answer to the call that gave it."""
    seen = subject(request, public_id, f"which call gave answer {seq}", is_review=is_review)
    n = call_of_answer(seen.conversation, seq)
    if n is None:
        raise Http404("no call gave such an answer")
    return redirect(seen.address("call", n))


@login_required
@require_safe
def change(
    request: HttpRequest, public_id: UUID, seq: int, *, is_review: bool = True
) -> HttpResponse:
    """Lead a reviewer to a transformation."""
    seen = subject(request, public_id, f"transformation {seq}", is_review=is_review)
    key = admin_change(seen.conversation, seq)
    if key is None:
        raise Http404("no such transformation")
    return redirect("admin:conversations_transformation_change", key)
