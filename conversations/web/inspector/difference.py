"""The page of the difference between two calls."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from conversations.inspector.call_index import read_call_index
from conversations.inspector.calls import read_call
from conversations.inspector.difference import compare_calls
from conversations.inspector.sent_messages import catch_damage, trace_call
from conversations.web.inspector.access import open_subject, render_page
from conversations.web.inspector.timeline import parse_number


@login_required
@require_safe
def compare(request: HttpRequest, public_id: UUID, *, is_review: bool = False) -> HttpResponse:
    """Redirect to the comparison of the two calls a form names, the earlier one first."""
    seen = open_subject(request, public_id, "which calls it has", is_review=is_review)
    chosen = [parse_number(request.GET.get(name)) for name in ("a", "b")]
    found = sorted(n for n in chosen if n)
    if len(set(found)) < 2:
        return redirect(seen.address("timeline"))
    return redirect(seen.address("diff", *found))


@login_required
@require_safe
def diff(
    request: HttpRequest, public_id: UUID, a: int, b: int, *, is_review: bool = False
) -> HttpResponse:
    """Show blocks added, removed and altered between two calls."""
    what = f"what changed between calls {a} and {b}"
    seen = open_subject(request, public_id, what, is_review=is_review)
    found = read_call_index(seen.conversation)
    one, other = read_call(seen.conversation, found, a), read_call(seen.conversation, found, b)
    if one is None or other is None:
        raise Http404("no such calls")
    shown, problem = catch_damage(
        lambda: compare_calls(one, other, trace_call(one), trace_call(other))
    )
    context = {"a": found.call(a), "b": found.call(b), "calls": found.calls}
    return render_page(request, seen, "diff", difference=shown, problem=problem, **context)
