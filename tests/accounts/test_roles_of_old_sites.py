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
WRITING_PROMPTS = import_module("conversations.migrations.0053_rights_to_write_prompts")
SETTING_ALERTS = import_module("conversations.migrations.0056_rights_to_set_alerts")
COST_CENTRES = import_module("conversations.migrations.0064_rights_on_cost_centres")
SIGHT_OF_MOVES = import_module("conversations.migrations.0050_rights_to_see_moves")
SIGHT_OF_RECORDS = import_module("conversations.migrations.0067_rights_to_see_money_records")


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


def give_sight_of_moves() -> set[str]:
    """Run the migration, and return the groups that see moves of the database."""
    SIGHT_OF_MOVES.give_rights(apps, connection.schema_editor())
    seeing = Group.objects.filter(permissions__codename="view_databasemove")
    return set(seeing.values_list("name", flat=True))


def test_moves_of_the_database_are_seen_by_those_who_see_what_was_changed() -> None:
    Permission.objects.filter(codename="view_databasemove").delete()
    Group.objects.create(name="Others")
    assert give_sight_of_moves() == {"Administrator", "Auditor"}
    auditor = Group.objects.get(name="Auditor")
    auditor.permissions.remove(*auditor.permissions.filter(codename="view_databasemove"))
    assert give_sight_of_moves() == {"Administrator"}
    Group.objects.all().delete()
    assert give_sight_of_moves() == set()


def write_prompts() -> set[str]:
    """Run the migration, and return the groups that write prompts of the site."""
    WRITING_PROMPTS.give_rights(apps, connection.schema_editor())
    rows = Group.objects.filter(permissions__codename="change_siteprompt")
    return set(rows.values_list("name", flat=True))


def test_prompts_of_the_site_are_written_by_administrators() -> None:
    Permission.objects.filter(codename__endswith="_siteprompt").delete()
    assert write_prompts() == {"Administrator"}
    boss = Group.objects.get(name="Administrator")
    assert held(boss) == ROLES[0].permissions
    boss.permissions.remove(*boss.permissions.filter(codename="change_siteprompt"))
    assert write_prompts() == set()
    Group.objects.all().delete()
    assert write_prompts() == set()


def set_alerts() -> set[str]:
    """Run the migration, and return the groups that set alerts of budgets."""
    SETTING_ALERTS.give_rights(apps, connection.schema_editor())
    rows = Group.objects.filter(permissions__codename="change_budgetalert")
    return set(rows.values_list("name", flat=True))


def test_alerts_of_budgets_are_set_by_budget_officers() -> None:
    for name in ("_budgetalert", "_alertdelivery"):
        Permission.objects.filter(codename__endswith=name).delete()
    assert set_alerts() == {"Budget officer"}
    officer = Group.objects.get(name="Budget officer")
    role = next(role for role in ROLES if role.name == "Budget officer")
    assert held(officer) == role.permissions
    officer.permissions.remove(*officer.permissions.filter(codename="change_budgetalert"))
    assert set_alerts() == set()
    Group.objects.all().delete()
    assert set_alerts() == set()


def test_cost_centres_are_set_and_seen_by_those_who_set_and_see_budgets() -> None:
    Permission.objects.filter(codename__endswith="_costcentre").delete()
    Group.objects.get(name="Administrator").permissions.clear()
    COST_CENTRES.give_rights(apps, connection.schema_editor())
    officer = next(role for role in ROLES if role.name == "Budget officer")
    assert held(Group.objects.get(name=officer.name)) == officer.permissions
    assert not held(Group.objects.get(name="Administrator"))


def give_sight_of_records() -> set[str]:
    """Run the migration, and return the groups that see who changed prices and limits."""
    SIGHT_OF_RECORDS.give_rights(apps, connection.schema_editor())
    rows = Group.objects.filter(permissions__codename="view_moneyrecord")
    return set(rows.values_list("name", flat=True))


def test_records_of_money_are_seen_by_those_who_see_prices_or_what_was_changed() -> None:
    for _ in range(2):
        Permission.objects.filter(codename="view_moneyrecord").delete()
        assert give_sight_of_records() == {"Administrator", "Budget officer", "Auditor"}
    Group.objects.get(name="Auditor").permissions.clear()
    assert give_sight_of_records() == {"Administrator", "Budget officer"}
    Group.objects.all().delete()
    assert give_sight_of_records() == set()
