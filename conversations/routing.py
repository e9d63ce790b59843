"""WebSocket routes; an unknown path is closed without a traceback."""

from __future__ import annotations

from typing import Any

from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import path, re_path

from conversations.live.consumer import ChatConsumer


class Nowhere(AsyncWebsocketConsumer):
    channel_layer_alias = ""

    async def connect(self) -> None:
        await self.close()


# Channels routes ASGI applications with Django's own path(), whose types know views only.
_chat: Any = ChatConsumer.as_asgi()
_nowhere: Any = Nowhere.as_asgi()
websocket_urlpatterns: list[Any] = [
    path("ws/c/<uuid:public_id>/", _chat),
    re_path(r"^.*$", _nowhere),
]
