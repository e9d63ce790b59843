"""The overview: how the site ran, what it cost and what reductions saved, on one page.

It shows counts and sums, so it is for staff who may view the counted tables.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from conversations.budgets.usage import charts, days
from conversations.budgets.usage.centres import sum_centres
from conversations.budgets.usage.csv_rows import SHEETS
from conversations.budgets.usage.groups import name_purpose, sum_lines
from conversations.budgets.usage.percentiles import SAMPLE
from conversations.budgets.usage.savings import Step
from conversations.budgets.usage.shares import WAYS, split_money, sum_by_group
from conversations.budgets.usage.site import Site, sum_site
from conversations.rendering.numbers import write_number
from conversations.web.streamed_downloads import stream_rows

NEEDED = tuple(f"conversations.view_{name}" for name in ("apicall", "transformation", "turn"))
#: Rows of the table of users; the CSV file has all.
MOST_USERS = 25


def may_see(request: HttpRequest) -> bool:
    return request.user.has_perms(NEEDED)


def page(request: HttpRequest) -> HttpResponse:
    if not may_see(request):
        raise PermissionDenied
    found, way = sum_site(_read_span(request)), request.GET.get("by", "")
    context = admin.site.each_context(request) | _build_context(found) | {"title": _("Overview")}
    context |= _split_costs(found, way if way in WAYS else WAYS[0])
    return TemplateResponse(request, "admin/overview.html", context)


def table(request: HttpRequest, name: str) -> HttpResponseBase:
    """Send one of the tables as CSV."""
    if not may_see(request):
        raise PermissionDenied
    if name not in SHEETS:
        raise Http404("no such table")
    span = _read_span(request)
    file = f"agentweb-{name}-{span.first}-{span.last}.csv"
    return stream_rows(request, SHEETS[name](span), file)


def _read_span(request: HttpRequest) -> days.Span:
    query = request.GET.dict()
    return days.read_span({"period": "30"} | query, timezone.now().date())


def _split_costs(found: Site, by: str) -> dict[str, Any]:
    """Return the template context of daily cost, split as requested."""
    return {
        "by": by,
        "ways": [way for way in WAYS if way != "centre" or found.centres],
        "money": charts.draw_columns(found.span, split_money(found, by), show=charts.format_cents),
        "groups": sum_by_group(found.users),
    }


def _build_context(found: Site) -> dict[str, Any]:
    span, replies = found.span, found.cost_of("reply")
    compacting = found.cost_of("summary")
    kinds = ((step.day, step.kind, step.changes.applied) for step in found.steps)
    return {
        "span": span,
        "site": found,
        "turns": charts.draw_turns_by_day(span, found.turns),
        "steps": charts.draw_columns(span, kinds, show=write_number),
        "tokens": charts.draw_tokens_by_day(span, found.groups),
        "outcomes": count_outcomes(found.steps),
        "purposes": sum_lines(found.groups, name_purpose),
        "purpose_files": (
            (_("By purpose, as CSV"), reverse("admin:overview_csv", args=["purposes"])),
            (
                _("By day, model and purpose, as CSV"),
                reverse("admin:overview_csv", args=["days"]),
            ),
        ),
        "centres": sum_centres(found.centres, found.groups) if found.centres else (),
        "centre_files": (
            (_("By cost centre, as CSV"), reverse("admin:overview_csv", args=["cost-centres"])),
        ),
        "users": found.users[:MOST_USERS],
        "compacting": compacting,
        "compacting_share": compacting * 100 // replies if replies else None,
        "runs": sum(found.states.values()),
        "sample": SAMPLE,
        "error_median": _format_percent(found.errors.median),
        "error_high": _format_percent(found.errors.high),
    }


def _format_percent(tenths: int | None) -> str:
    return "" if tenths is None else f"{tenths // 10}.{tenths % 10}"


def count_outcomes(steps: tuple[Step, ...]) -> list[tuple[str, dict[str, int], int]]:
    """Count the outcomes of each kind, with the tokens saved; most frequent first."""
    counts: defaultdict[str, dict[str, int]] = defaultdict(
        lambda: {"applied": 0, "rejected": 0, "vetoed": 0, "expected": 0}
    )
    saved: defaultdict[str, int] = defaultdict(int)
    for step in steps:
        counts[step.kind][step.outcome] += step.count
        saved[step.kind] += step.changes.saved
    rows = [(kind, found, saved[kind]) for kind, found in counts.items()]
    return sorted(rows, key=lambda row: -sum(row[1].values()))
