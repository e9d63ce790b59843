"""URLs of the chat, of accounts and of health."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView

from conversations import setup, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.home, name="home"),
    path("c/new/", views.new_chat, name="new_chat"),
    path("c/start/", views.start, name="start"),
    path("c/<uuid:public_id>/", views.chat, name="chat"),
    path("c/<uuid:public_id>/send/", views.send, name="send"),
    path("c/<uuid:public_id>/stop/", views.stop, name="stop"),
    path("c/<uuid:public_id>/retry/<int:number>/", views.retry, name="retry"),
    path("c/<uuid:public_id>/inspect/events/<int:seq>/", views.reduction, name="reduction"),
    path("c/<uuid:public_id>/tools/<str:id>/", views.tool_output, name="tool_output"),
    path("accounts/login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("setup/<str:token>/", setup.page, name="setup"),
    path("favicon.ico", RedirectView.as_view(url="/static/agentweb.svg"), name="favicon"),
    path("healthz/live", views.live, name="live"),
    path("healthz/ready", views.ready, name="ready"),
]
