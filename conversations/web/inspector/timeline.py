"""The inspector's first page: timeline, present context, charts."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from conversations.inspector import charts
from conversations.inspector.call_index import (
    CallIndex,
    find_call_of_answer,
    find_change_key,
    read_call_index,
)
from conversations.inspector.current_context import (
    read_current_context,
    read_entries,
    read_outline,
)
from conversations.inspector.sent_messages import catch_damage
from conversations.inspector.timeline import build_timeline
from conversations.reductions.policy_outline import PolicyOutline
from conversations.web.inspector.access import Subject, open_subject, render_page


def parse_number(value: str | None) -> int | None:
    """Parse a number of an address; None when it is malformed."""
    return (
        int(value) if value and value.isdecimal() and value.isascii() and len(value) < 10 else None
    )


@login_required
@require_safe
def inspect(request: HttpRequest, public_id: UUID, *, is_review: bool = False) -> HttpResponse:
    """Show the timeline: as a page, as the part in a drawer, or the calls before one."""
    seen = open_subject(request, public_id, "its calls, one by one", is_review=is_review)
    found = read_call_index(seen.conversation)
    is_all = request.GET.get("branches") == "all"
    before = parse_number(request.GET.get("before"))
    shown = build_timeline(found, before=before, is_all=is_all)
    context: dict[str, Any] = {
        "timeline": shown, "ahead": read_outline(seen.conversation),
        "is_older": before is not None, "is_drawer": request.GET.get("drawer") == "1",
    }  # fmt: skip
    if request.htmx:  # type: ignore[attr-defined]
        part = "drawer" if context["is_drawer"] and before is None else "_events"
        return render_page(request, seen, part, **context)
    more = _draw_charts(seen, found, context["ahead"]) if before is None else {}
    return render_page(request, seen, "timeline", **context, **more)


def _draw_charts(seen: Subject, found: CallIndex, ahead: PolicyOutline | None) -> dict[str, object]:
    calls = [call for call in found.calls if call.is_on_path]
    changes = [change for change in found.changes if change.is_on_path]
    return {
        "sizes": charts.draw_sizes(calls, changes, ahead, seen.address),
        "cached": charts.draw_cache(calls),
        "costs": charts.draw_cost(calls),
    }


@login_required
@require_safe
def present(request: HttpRequest, public_id: UUID, *, is_review: bool = False) -> HttpResponse:
    """Show what fills the context now and what will be reduced next."""
    seen = open_subject(request, public_id, "what its context is made of", is_review=is_review)
    is_brief = request.GET.get("brief") == "1"
    page = ("_now_brief" if is_brief else "_now") if request.htmx else "now"  # type: ignore[attr-defined]
    return render_page(request, seen, page, now=read_current_context(seen.conversation))


@login_required
@require_safe
def kinds(request: HttpRequest, public_id: UUID, *, is_review: bool = False) -> HttpResponse:
    """Show what each request was made of, as a chart."""
    seen = open_subject(request, public_id, "what its requests were made of", is_review=is_review)
    found = read_call_index(seen.conversation)
    calls = [call for call in found.calls if call.is_on_path]
    chart, problem = catch_damage(lambda: charts.draw_kinds(read_entries(seen.conversation), calls))
    page = "_kinds" if request.htmx else "kinds"  # type: ignore[attr-defined]
    return render_page(request, seen, page, chart=chart, problem=problem)


@login_required
@require_safe
def answer(
    request: HttpRequest, public_id: UUID, seq: int, *, is_review: bool = False
) -> HttpResponse:
    """Redirect from an answer to the call that returned it."""
    seen = open_subject(request, public_id, f"which call gave answer {seq}", is_review=is_review)
    n = find_call_of_answer(seen.conversation, seq)
    if n is None:
        raise Http404("no call gave such an answer")
    return redirect(seen.address("call", n))


@login_required
@require_safe
def change(
    request: HttpRequest, public_id: UUID, seq: int, *, is_review: bool = True
) -> HttpResponse:
    """Redirect a reviewer to a transformation in the admin."""
    seen = open_subject(request, public_id, f"transformation {seq}", is_review=is_review)
    key = find_change_key(seen.conversation, seq)
    if key is None:
        raise Http404("no such transformation")
    return redirect("admin:conversations_transformation_change", key)
