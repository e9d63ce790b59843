"""Let the roles that see who changed what see moves of the database, on sites that exist.

A group is left alone where an operator has given this right to anybody already.
"""

from django.apps import apps as present
from django.contrib.auth.management import create_permissions
from django.db import migrations

ROLES = ("Administrator", "Auditor")


def give_rights(apps, schema_editor):
    group, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    using = schema_editor.connection.alias
    kept = {"permissions__codename": "view_logentry", "permissions__content_type__app_label": "admin"}
    groups = group.objects.using(using).filter(name__in=ROLES, **kept)
    if not groups.exists():
        return
    # They are made after all migrations, which on this way is too late.
    create_permissions(
        present.get_app_config("conversations"), verbosity=0, using=using, apps=apps
    )
    right = permission.objects.using(using).get(
        content_type__app_label="conversations", codename="view_databasemove"
    )
    if not right.group_set.exists():
        right.group_set.set(groups)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("conversations", "0049_corrected_overruns"),
    ]
    operations = [migrations.RunPython(give_rights, migrations.RunPython.noop)]
