"""The updates of an open chat over HTTP, where a network lets no websocket through.

The answer is what a socket would send on connecting: all after the page's bookmark. It is requested
every two seconds (`static/polling.js`), so it costs a rendering only where something may be new.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils.translation import get_language
from django.views.decorators.http import require_safe

from conversations.library.access import find_live_turn, load_owned_conversation
from conversations.live.hub import hub
from conversations.live.render import render_snapshot
from conversations.transcript.paging import parse_bookmark
from conversations.web.responses import require_user

#: The version that the page shows with this answer; it is sent back as `version`.
VERSION = "Page-Version"


@login_required
@require_safe
def updates(request: HttpRequest, public_id: UUID) -> HttpResponse:
    """Return the fragments after `after` and `mark`; 204: nothing is newer than `version`."""
    conversation = load_owned_conversation(require_user(request), public_id)
    known = request.GET.get("version")
    if known == str(conversation.version) and find_live_turn(conversation) is None:
        return HttpResponse(status=204, headers={VERSION: known})
    # The text of an answer that runs in another process is shown as its draft was last saved.
    topic = hub.find(conversation.pk)
    found = render_snapshot(
        conversation.pk,
        parse_bookmark(request.META["QUERY_STRING"].encode()),
        topic.live if topic else None,
        get_language() or "",
    )
    progress = topic.progress.values() if topic else ()
    return HttpResponse("\n".join((found.html, *progress)), headers={VERSION: str(found.version)})
