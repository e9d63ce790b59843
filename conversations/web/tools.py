"""The page of a conversation's tools: which the agent can use, and which are switched off."""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from conversations.library.access import load_owned_conversation
from conversations.toolbox.egress import find_egress_rule, switch_egress
from conversations.toolbox.tool_access import choose_web_search, switch_tools
from conversations.toolbox.tool_list import list_tools, read_search_choice
from conversations.web.page_shell import build_page_context
from conversations.web.responses import require_user


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def page(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Show the tools, or switch the shown ones on and off."""
    conversation = load_owned_conversation(require_user(request), public_id)
    rows, search = list_tools(conversation), read_search_choice(conversation)
    egress = find_egress_rule(conversation.owner_id, asks=conversation.asks_before_egress)
    if request.method == "POST":
        # Only those the page showed, so that a tool added meanwhile is not switched off unseen.
        shown = {row.name for row in rows if row.can_switch} & {*request.POST.getlist("shown")}
        on = shown & {*request.POST.getlist("on")}
        switch_tools(conversation_id=conversation.pk, on=on, off=shown - on)
        choice = request.POST.get("web_search", search.chosen)
        if search.can_choose and choice in search.choices:
            choose_web_search(conversation_id=conversation.pk, choice=choice)
        if egress in ("", "chat"):
            switch_egress(conversation_id=conversation.pk, asks="egress" in request.POST)
        return redirect("chat", conversation.public_id)
    context = {"conversation": conversation, "rows": rows, "search": search, "egress": egress}
    context |= build_page_context(request, conversation)
    return render(request, "conversations/toolbox.html", context)
