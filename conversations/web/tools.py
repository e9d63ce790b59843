"""The page of a conversation's tools: which the agent can use, and which are switched off."""

from __future__ import annotations

from uuid import UUID

from asgiref.sync import async_to_sync
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from conversations.agent.events import EgressChanged
from conversations.library.access import load_owned_conversation
from conversations.live.publish import announce
from conversations.toolbox.egress import find_egress_rule, switch_egress
from conversations.toolbox.tool_access import choose_web_search, switch_tools
from conversations.toolbox.tool_list import list_tools, read_search_choice
from conversations.web.page_shell import build_page_context
from conversations.web.responses import require_user


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Show the tools, or make the changes of the form.

    The form sends what it showed as well (`on_was`, `web_search_was`, `egress_was`), so that saving
    a page opened earlier does not undo what another tab changed meanwhile.
    """
    conversation = load_owned_conversation(require_user(request), public_id)
    rows, search = list_tools(conversation), read_search_choice(conversation)
    egress = find_egress_rule(conversation.owner_id, asks=conversation.asks_before_egress)
    if request.method == "POST":
        before, after = {*request.POST.getlist("on_was")}, {*request.POST.getlist("on")}
        names = {row.name for row in rows if row.can_switch}
        switch_tools(
            conversation_id=conversation.pk,
            on=names & (after - before),
            off=names & (before - after),
        )
        choice = _read_change(request, "web_search")
        if search.can_choose and choice in search.choices and "web_search" in request.POST:
            choose_web_search(conversation_id=conversation.pk, choice=choice)
        asks = _read_change(request, "egress")
        if egress in ("", "chat") and asks is not None:
            switch_egress(conversation_id=conversation.pk, asks=bool(asks))
            async_to_sync(announce)(conversation.pk, EgressChanged())
        return redirect("chat", conversation.public_id)
    context = {"conversation": conversation, "rows": rows, "search": search, "egress": egress}
    context |= build_page_context(request, conversation)
    return render(request, "conversations/tools.html", context)


def _read_change(request: HttpRequest, name: str) -> str | None:
    """Return the value of a field, "" for an unticked box; None when it is the one shown."""
    before, after = request.POST.get(f"{name}_was"), request.POST.get(name, "")
    return after if before is not None and after != before else None
