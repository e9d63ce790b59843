"""The app's start: guards and search index follow every migration, checks are registered."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate


class ConversationsConfig(AppConfig):
    name = "conversations"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from conversations import checks  # noqa: F401
        from conversations.services.guards import install_guards, provide_door
        from conversations.services.search import install_index

        post_migrate.connect(install_guards, sender=self, dispatch_uid="agentweb-guards")
        post_migrate.connect(install_index, sender=self, dispatch_uid="agentweb-search")
        connection_created.connect(provide_door, dispatch_uid="agentweb-door")
