"""Let administrators see and revoke links to chats, on sites that exist.

A group is left alone where an operator has given this right to anybody already.
"""

from django.apps import apps as present
from django.contrib.auth.management import create_permissions
from django.db import migrations


def give_rights(apps, schema_editor):
    group, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    using = schema_editor.connection.alias
    kept = {
        "permissions__codename": "add_user",
        "permissions__content_type__app_label": "conversations",
    }
    found = group.objects.using(using).filter(name="Administrator", **kept).first()
    if found is None:
        return
    # They are made after all migrations, which on this way is too late.
    create_permissions(
        present.get_app_config("conversations"), verbosity=0, using=using, apps=apps
    )
    rights = permission.objects.using(using).filter(
        content_type__app_label="conversations",
        codename__in=["view_sharedlink", "change_sharedlink"],
    )
    if not rights.filter(group__isnull=False).exists():
        found.permissions.add(*rights)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("conversations", "0072_shared_links"),
    ]
    operations = [migrations.RunPython(give_rights, migrations.RunPython.noop)]
