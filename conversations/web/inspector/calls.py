"""The pages of one call, and the parts of them that are loaded on demand."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from conversations.accounts import reading_log
from conversations.inspector.call_blocks import map_turns
from conversations.inspector.call_index import CallRow, read_call_index
from conversations.inspector.calls import build_call_page, read_call
from conversations.inspector.current_context import read_outline
from conversations.inspector.full_blocks import list_removed_blocks, read_full_block
from conversations.inspector.raw_request import read_raw_request
from conversations.inspector.sent_messages import TracedCall, catch_damage, trace_call
from conversations.log.rebuild import rebuild_request
from conversations.reductions.pins import list_pins
from conversations.web.inspector.access import Subject, open_subject, render_page
from conversations.web.inspector.timeline import parse_number

if TYPE_CHECKING:
    from conversations.models import ApiCall

FATES = ("summary", "left out", "thinking")


@login_required
@require_safe
def call(request: HttpRequest, public_id: UUID, n: int, *, is_review: bool = False) -> HttpResponse:
    """Show one call: what was sent, block by block, and all figures."""
    seen = open_subject(request, public_id, f"what the model saw at call {n}", is_review=is_review)
    found = read_call_index(seen.conversation)
    named, row = _demand_call(found.call(n)), _demand_row(read_call(seen.conversation, found, n))
    ahead = read_outline(seen.conversation)
    start = parse_number(request.GET.get("from")) or 0
    page = build_call_page(found, named, row, ahead, start=start)
    return render_page(request, seen, "call", page=page, call=named)


@login_required
@require_safe
def block(
    request: HttpRequest, public_id: UUID, n: int, index: int, *, is_review: bool = False
) -> HttpResponse:
    """Show one block in full beside its original."""
    seen = open_subject(request, public_id, f"block {index + 1} of call {n}", is_review=is_review)
    named, row, made, problem = _trace_call(seen, n)
    shown = None
    if made is not None:
        held = list_pins(seen.conversation, row.sent_at), list_pins(seen.conversation)
        turns = map_turns(seen.conversation)
        shown = read_full_block(made.found, index, turns, held, is_own=made.is_own)
        if shown is None:
            raise Http404("no such block")
    name = _choose_template(request, "block")
    return render_page(request, seen, name, call=named, whole=shown, problem=problem)


@login_required
@require_safe
def gone(
    request: HttpRequest, public_id: UUID, n: int, step: int, *, is_review: bool = False
) -> HttpResponse:
    """Show the originals that a step removed from the view of a call."""
    seen = open_subject(request, public_id, f"what call {n} left out", is_review=is_review)
    fate = request.GET.get("fate", "")
    if fate not in FATES:
        raise Http404("no such fate")
    named, _, made, problem = _trace_call(seen, n)
    start = parse_number(request.GET.get("from")) or 0
    found = made.found if made else None
    sides, after = (
        list_removed_blocks(found, step, fate, map_turns(seen.conversation), start)
        if found
        else ([], None)
    )
    if found and not sides:
        raise Http404("nothing was taken by such a step")
    context = {"sides": sides, "after": after, "step": step, "fate": fate, "problem": problem}
    return render_page(request, seen, _choose_template(request, "gone"), call=named, **context)


@login_required
@require_safe
def raw(request: HttpRequest, public_id: UUID, n: int, *, is_review: bool = False) -> HttpResponse:
    """Show the request as readable JSON."""
    seen = open_subject(request, public_id, reading_log.REQUEST % {"entry": n}, is_review=is_review)
    found = read_call_index(seen.conversation)
    named, row = _demand_call(found.call(n)), _demand_row(read_call(seen.conversation, found, n))
    name = _choose_template(request, "request")
    return render_page(request, seen, name, call=named, row=row, raw=read_raw_request(row))


@login_required
@require_safe
def body(request: HttpRequest, public_id: UUID, n: int, *, is_review: bool = False) -> HttpResponse:
    """Send the exact bytes of the request as a download."""
    seen = open_subject(request, public_id, reading_log.REQUEST % {"entry": n}, is_review=is_review)
    row = _demand_row(read_call(seen.conversation, read_call_index(seen.conversation), n))
    made = rebuild_request(row)
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
    if made.problem:
        plain = "text/plain; charset=utf-8"
        return HttpResponse(made.problem, content_type=plain, status=409, headers=headers)
    headers["Content-Disposition"] = f'attachment; filename="call-{n}.json"'
    return HttpResponse(made.body.encode(), content_type="application/json", headers=headers)


def _choose_template(request: HttpRequest, name: str) -> str:
    """Return the template of the part for htmx, else that of the page around it."""
    return f"_{name}" if request.htmx else name  # type: ignore[attr-defined]


def _trace_call(seen: Subject, n: int) -> tuple[CallRow, ApiCall, TracedCall | None, str]:
    found = read_call_index(seen.conversation)
    named, row = _demand_call(found.call(n)), _demand_row(read_call(seen.conversation, found, n))
    made, problem = catch_damage(lambda: trace_call(row))
    return named, row, made, problem


def _demand_call(found: CallRow | None) -> CallRow:
    if found is None:
        raise Http404("no such call")
    return found


def _demand_row(found: ApiCall | None) -> ApiCall:
    if found is None:
        raise Http404("no such call")
    return found
