"""The review site: Django's admin, with the overview in front of its tables."""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig
from django.urls import URLPattern, URLResolver, path


class ReviewSite(AdminSite):
    index_template = "admin/review.html"

    def get_urls(self) -> list[URLResolver | URLPattern]:
        # Tables are registered with this site, so they are imported after it.
        from conversations.admin import overview

        return [
            path("overview/", self.admin_view(overview.page), name="overview"),
            path("overview/<str:name>.csv", self.admin_view(overview.table), name="overview_csv"),
            *super().get_urls(),
        ]


class ReviewConfig(AdminConfig):
    default_site = "agentweb.review.ReviewSite"
