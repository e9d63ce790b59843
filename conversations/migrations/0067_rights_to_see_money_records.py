"""Let roles that see prices or what was changed see the records of money, on sites that exist.

The groups are left alone where an operator has given these rights to anybody already.
"""

from django.apps import apps as present
from django.contrib.auth.management import create_permissions
from django.db import migrations

#: A group has the rights of its role still if it has this one.
ROLES = {
    "Administrator": "view_ledgerentry",
    "Budget officer": "view_ledgerentry",
    "Auditor": "view_logentry",
}


def give_rights(apps, schema_editor):
    group, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    using = schema_editor.connection.alias
    groups = group.objects.using(using)
    if not groups.filter(name__in=ROLES).exists():
        return
    # They are made after all migrations, which on this way is too late.
    create_permissions(
        present.get_app_config("conversations"), verbosity=0, using=using, apps=apps
    )
    rights = permission.objects.using(using).filter(
        content_type__app_label="conversations", codename="view_moneyrecord"
    )
    if rights.filter(group__isnull=False).exists():
        return
    for name, kept in ROLES.items():
        for found in groups.filter(name=name, permissions__codename=kept):
            found.permissions.add(*rights)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("conversations", "0066_limits_a_minute"),
    ]
    operations = [migrations.RunPython(give_rights, migrations.RunPython.noop)]
