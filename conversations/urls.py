"""URLs of the chat, of accounts and of health."""

from __future__ import annotations

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import URLPattern, URLResolver, path
from django.views.generic import RedirectView

from conversations import pinning, setup, trying, tuning, views
from conversations.history import data, exports, imports, lists, menu, search

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.home, name="home"),
    path("c/new/", views.new_chat, name="new_chat"),
    path("c/start/", views.start, name="start"),
    path("c/<uuid:public_id>/", views.chat, name="chat"),
    path("c/<uuid:public_id>/send/", views.send, name="send"),
    path("c/<uuid:public_id>/stop/", views.stop, name="stop"),
    path("c/<uuid:public_id>/retry/<int:number>/", views.retry, name="retry"),
    path("c/<uuid:public_id>/inspect/events/<int:seq>/", views.reduction, name="reduction"),
    path("c/<uuid:public_id>/inspect/events/<int:seq>/restore/", pinning.restore, name="restore"),
    path("c/<uuid:public_id>/inspect/events/<int:seq>/undo/", pinning.undo, name="undo"),
    path("c/<uuid:public_id>/lab/", trying.page, name="lab"),
    path("c/<uuid:public_id>/settings/", tuning.page, name="settings"),
    path("c/<uuid:public_id>/pin/", pinning.pin, name="pin"),
    path("c/<uuid:public_id>/unpin/", pinning.unpin, name="unpin"),
    path("c/<uuid:public_id>/tools/<str:id>/", views.tool_output, name="tool_output"),
    path("c/<uuid:public_id>/menu/", menu.menu, name="chat_menu"),
    path("c/<uuid:public_id>/menu/rename/", menu.rename, name="rename"),
    path("c/<uuid:public_id>/menu/pin/", menu.pin, name="pin_chat"),
    path("c/<uuid:public_id>/menu/archive/", menu.archive, name="archive"),
    path("c/<uuid:public_id>/menu/delete/", menu.delete, name="delete"),
    path("c/<uuid:public_id>/export.<str:form>", exports.conversation, name="export"),
    path("c/list/", lists.conversations, name="list"),
    path("search/", search.search, name="search"),
    path("trash/", lists.trash, name="trash"),
    path("trash/empty/", lists.empty, name="empty_trash"),
    path("trash/<uuid:public_id>/back/", menu.bring_back, name="bring_back"),
    path("trash/<uuid:public_id>/erase/", menu.erase, name="erase"),
    path("settings/data/", data.page, name="data"),
    path("settings/data/export.zip", exports.everything, name="export_all"),
    path("settings/data/import/", imports.upload, name="import"),
    path("settings/data/delete/", data.delete, name="delete_data"),
    path("accounts/login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("setup/<str:token>/", setup.page, name="setup"),
    path("favicon.ico", RedirectView.as_view(url="/static/agentweb.svg"), name="favicon"),
    path("healthz/live", views.live, name="live"),
    path("healthz/ready", views.ready, name="ready"),
]
