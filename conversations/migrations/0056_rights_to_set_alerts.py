"""Let budget officers set alerts, on sites that exist.

The group is left alone where an operator has given these rights to anybody already.
"""

from django.apps import apps as present
from django.contrib.auth.management import create_permissions
from django.db import migrations

TABLES = {"budgetalert": ("view", "add", "change", "delete"), "alertdelivery": ("view",)}


def give_rights(apps, schema_editor):
    group, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    using = schema_editor.connection.alias
    kept = {
        "permissions__codename": "add_budget",
        "permissions__content_type__app_label": "conversations",
    }
    found = group.objects.using(using).filter(name="Budget officer", **kept).first()
    if found is None:
        return
    # They are made after all migrations, which on this way is too late.
    create_permissions(
        present.get_app_config("conversations"), verbosity=0, using=using, apps=apps
    )
    names = [f"{verb}_{table}" for table, verbs in TABLES.items() for verb in verbs]
    rights = permission.objects.using(using).filter(
        content_type__app_label="conversations", codename__in=names
    )
    if not rights.filter(group__isnull=False).exists():
        found.permissions.add(*rights)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("conversations", "0055_budget_alerts"),
    ]
    operations = [migrations.RunPython(give_rights, migrations.RunPython.noop)]
