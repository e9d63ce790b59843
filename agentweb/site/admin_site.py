"""The admin site: Django's admin, with the overview before its tables, which stand by job.

People log in where all of the site logs in, so that attempts are counted and second factors asked
for in one place; a password is changed in one place only.
Permission for a table is checked before a row is looked up, so that the response does not reveal
which rows exist. Rows with a text that cannot be decoded are shown with what can be.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.admin.apps import AdminConfig
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import DataError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import SimpleTemplateResponse
from django.urls import URLPattern, URLResolver, path, reverse

from agentweb.site.admin_jobs import JOBS, group_tables


class ReviewSite(AdminSite):
    index_template = "admin/review.html"

    def get_urls(self) -> list[URLResolver | URLPattern]:
        # Tables are registered with this site, so their modules are imported after it.
        from conversations.admin import bulk_budgets, overview, report_page, spending_page

        return [
            path("overview/", self.admin_view(overview.page), name="overview"),
            path("overview/<str:name>.csv", self.admin_view(overview.table), name="overview_csv"),
            path("spending/", self.admin_view(spending_page.page), name="spending"),
            path("spending/several/", self.admin_view(bulk_budgets.page), name="bulk_budgets"),
            path("spending/report/", self.admin_view(report_page.page), name="provider_report"),
            path("spending.csv", self.admin_view(spending_page.table), name="spending_csv"),
            *super().get_urls(),
        ]

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        # Tables are imported after this site.
        from conversations.budgets.money_records import changed_by
        from conversations.log.findings import read_leniently

        table = getattr(view, "__self__", None)

        @wraps(view)
        def call_view(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if isinstance(table, ModelAdmin) and not any(table.get_model_perms(request).values()):
                raise PermissionDenied
            try:
                with changed_by(request.user.pk, _read_reason(request)):
                    if request.method in ("GET", "HEAD"):
                        return read_leniently(lambda: _render(view(request, *args, **kwargs)))
                    return view(request, *args, **kwargs)
            except (OverflowError, DataError) as error:
                # A number or text in the URL that does not fit any database column.
                raise SuspiciousOperation("the address asks for what no column takes") from error

        return super().admin_view(call_view, cacheable)

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """List the tables by job; those of one app as Django does."""
        found = super().get_app_list(request, app_label)
        return found if app_label else group_tables(found)

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        from conversations.admin.job_states import list_job_states

        states = list_job_states(request)
        jobs = [(job, JOBS[job][0], counts) for job, counts in states.items()]
        return super().index(request, (extra_context or {}) | {"job_states": jobs})

    def login(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Send strangers to the site's own log-in, and refuse people who are not staff."""
        from django.contrib.auth.views import redirect_to_login

        if not request.user.is_authenticated:
            path = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index")
            return redirect_to_login(path)
        if not self.has_permission(request):
            raise PermissionDenied
        return super().login(request, extra_context)

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        return redirect("account_settings")


def _render(response: HttpResponse) -> HttpResponse:
    """Render a page at once, because its template reads rows, too."""
    return response.render() if isinstance(response, SimpleTemplateResponse) else response


def _read_reason(request: HttpRequest) -> str:
    """Return the reason that a form gives for a change, as the record of money keeps it."""
    return request.POST.get("reason", "").replace("\0", "").strip()[:200]


class ReviewConfig(AdminConfig):
    default_site = "agentweb.site.admin_site.ReviewSite"
