"""The state of each job of the admin, for its first page: a few counts that say where to look."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from django.db.models import F, Q
from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from conversations.budgets.prices import find_unpriced_models
from conversations.models import (
    ApiModel,
    Crossing,
    LegalHold,
    McpServer,
    McpTool,
    Transformation,
    User,
)
from conversations.rendering.numbers import write_number

#: What is recent.
_RECENT = timedelta(hours=24)
Counts = Iterator[tuple[str | Promise, int]]


def list_job_states(request: HttpRequest) -> dict[str, list[tuple[str, str]]]:
    """Return names and counts for each job whose tables a member of staff may view."""
    return {
        job: [(str(name), write_number(count)) for name, count in read()]
        for job, (needed, read) in _STATES.items()
        if request.user.has_perm(f"conversations.view_{needed}")
    }


def _find_recent() -> tuple[datetime, datetime]:
    """Return both ends of what is recent; with one SQLite may read all rows for the last few."""
    now = timezone.now()
    return now - _RECENT, now


def _count_reductions() -> Counts:
    rows = Transformation.objects.filter(created_at__range=_find_recent())
    yield _("Reductions in 24 hours"), rows.filter(outcome="applied").count()
    rejected = rows.filter(outcome="rejected", kind="summary")
    yield _("Rejected summaries in 24 hours"), rejected.count()


def _count_crossings() -> Counts:
    rows = Crossing.objects.filter(created_at__range=_find_recent())
    yield _("Limits reached in 24 hours"), rows.filter(percent__gte=100).count()
    yield _("Limits nearly reached in 24 hours"), rows.filter(percent__lt=100).count()


def _count_people() -> Counts:
    active = User.objects.filter(is_active=True)
    yield _("People who may log in"), active.count()
    since = timezone.now() - _RECENT
    yield _("Logged in in 24 hours"), active.filter(last_login__gte=since).count()


def _count_servers() -> Counts:
    enabled = McpServer.objects.filter(is_enabled=True)
    yield _("Servers"), enabled.count()
    yield _("Servers that fail"), enabled.filter(state=McpServer.State.FAILED).count()
    decided = Q(listed_digest=F("approved_digest")) | Q(listed_digest=F("rejected_digest"))
    waiting = McpTool.objects.filter(server__is_enabled=True).exclude(listed_digest="")
    yield _("Tools to decide on"), waiting.exclude(decided).count()


def _count_models() -> Counts:
    yield _("Models in use"), ApiModel.objects.filter(is_enabled=True).count()
    yield _("Models without a price"), len(find_unpriced_models())


def _count_holds() -> Counts:
    yield _("Legal holds in force"), LegalHold.objects.filter(release=None).count()


_STATES: dict[str, tuple[str, Callable[[], Counts]]] = {
    "review": ("transformation", _count_reductions),
    "money": ("crossing", _count_crossings),
    "people": ("user", _count_people),
    "tools": ("mcpserver", _count_servers),
    "models": ("apimodel", _count_models),
    "records": ("legalhold", _count_holds),
}
