"""The app's start: registers checks; after migrations, sets triggers, rights, roles and index."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate, pre_migrate


class ConversationsConfig(AppConfig):
    name = "conversations"
    #: In the breadcrumbs of every page of the admin, whatever its table is about.
    verbose_name = "agentweb"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from conversations import checks  # noqa: F401
        from conversations.accounts.roles import install_roles
        from conversations.budgets.crossings import watch_limits
        from conversations.budgets.money_records import record_first, watch_rows
        from conversations.log.erase_functions import install_erase_functions
        from conversations.log.search_index import install_index
        from conversations.log.settings_version import install_settings_version
        from conversations.log.triggers import (
            define_erasing_function,
            drop_insert_guards,
            install_guards,
        )
        from conversations.operations.db_damage import watch_statements
        from conversations.operations.db_role import grant_rights
        from conversations.web import after_log_in  # noqa: F401

        pre_migrate.connect(drop_insert_guards, sender=self, dispatch_uid="agentweb-places")
        post_migrate.connect(install_guards, sender=self, dispatch_uid="agentweb-guards")
        post_migrate.connect(install_index, sender=self, dispatch_uid="agentweb-search")
        post_migrate.connect(
            install_erase_functions, sender=self, dispatch_uid="agentweb-erase-functions"
        )
        post_migrate.connect(
            install_settings_version, sender=self, dispatch_uid="agentweb-settings"
        )
        post_migrate.connect(install_roles, sender=self, dispatch_uid="agentweb-roles")
        post_migrate.connect(grant_rights, sender=self, dispatch_uid="agentweb-rights")
        post_migrate.connect(record_first, sender=self, dispatch_uid="agentweb-money")
        watch_rows()
        watch_limits()
        connection_created.connect(
            define_erasing_function, dispatch_uid="agentweb-erasing-function"
        )
        connection_created.connect(watch_statements, dispatch_uid="agentweb-soundness")
