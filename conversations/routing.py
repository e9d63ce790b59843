"""Sockets by path; an unknown path is closed without a traceback."""

from __future__ import annotations

from channels.generic.websocket import AsyncWebsocketConsumer
from django.urls import path, re_path

from conversations.consumers import ChatConsumer


class Nowhere(AsyncWebsocketConsumer):
    async def connect(self) -> None:
        await self.close()


websocket_urlpatterns = [
    path("ws/c/<uuid:public_id>/", ChatConsumer.as_asgi()),
    re_path(r"^.*$", Nowhere.as_asgi()),
]
