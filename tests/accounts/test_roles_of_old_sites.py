"""A site that is older than some rights of the roles gets them with the migration."""

from __future__ import annotations

from importlib import import_module

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.db import connection

from conversations.accounts.roles import ROLES

pytestmark = pytest.mark.django_db
NEW = ("invitation", "retentionrule", "legalhold", "holdrelease")
MIGRATION = import_module("conversations.migrations.0041_rights_of_roles")


def make_old() -> None:
    """Take from everybody the rights that came later, and the rows that name them."""
    for table in NEW:
        Permission.objects.filter(codename__endswith=f"_{table}").delete()


def upgrade() -> None:
    MIGRATION.give_rights(apps, connection.schema_editor())


def held(group: Group) -> set[str]:
    rows = group.permissions.values_list("content_type__app_label", "codename")
    return {f"{app}.{name}" for app, name in rows}


def test_an_older_site_gets_what_a_new_one_has() -> None:
    make_old()
    upgrade()
    for role in ROLES:
        assert held(Group.objects.get(name=role.name)) == role.permissions, role.name


def test_what_an_operator_gave_or_took_stays() -> None:
    make_old()
    Group.objects.get(name="Auditor").permissions.clear()
    upgrade()
    assert not held(Group.objects.get(name="Auditor"))
    group = Group.objects.get(name="Administrator")
    group.permissions.remove(*Permission.objects.filter(codename="add_invitation"))
    upgrade()
    assert "conversations.add_invitation" not in held(group)
    Group.objects.all().delete()
    upgrade()
    assert not Group.objects.exists()
