"""URLs: the app's pages, the admin, accounts, metrics, error pages."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path

from agentweb.observability.metrics_page import figures

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
    path("metrics", figures, name="metrics"),
    path("", include("conversations.urls")),
]
handler400 = "agentweb.site.error_page.bad_request"
handler500 = "agentweb.site.error_page.server_error"
