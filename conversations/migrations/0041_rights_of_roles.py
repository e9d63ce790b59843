"""Give the roles of sites that exist the rights that came after them: to invite, retention, holds.

A group is left alone where an operator has given one of these rights to anybody already.
"""

from django.apps import apps as present
from django.contrib.auth.management import create_permissions
from django.db import migrations

VIEW_ADD = ("view", "add")
ALL = ("view", "add", "change", "delete")
#: The role and what it must still hold to be one, then the table and the verbs that come to it.
RIGHTS = (
    ("Administrator", "add_user", "invitation", ("view", "add", "change")),
    ("Administrator", "add_user", "retentionrule", ALL),
    ("Administrator", "add_user", "legalhold", ("view",)),
    ("Auditor", "read_content", "legalhold", VIEW_ADD),
    ("Auditor", "read_content", "holdrelease", VIEW_ADD),
)


def give_rights(apps, schema_editor):
    group, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    using = schema_editor.connection.alias
    roles = {name for name, *_ in RIGHTS}
    if not group.objects.using(using).filter(name__in=roles).exists():
        return
    # They are made after all migrations, which on this way is too late.
    create_permissions(
        present.get_app_config("conversations"), verbosity=0, using=using, apps=apps
    )
    ours = permission.objects.using(using).filter(content_type__app_label="conversations")
    tables = {table for *_, table, _ in RIGHTS}
    new = {table for table in tables if not _is_given(ours, table)}
    for role, kept, table, verbs in RIGHTS:
        found = group.objects.using(using).filter(name=role, permissions__in=ours.filter(codename=kept))
        if table in new and (one := found.first()) is not None:
            names = [f"{verb}_{table}" for verb in verbs]
            one.permissions.add(*ours.filter(codename__in=names))


def _is_given(ours, table):
    names = [f"{verb}_{table}" for verb in ALL]
    return ours.filter(codename__in=names, group__isnull=False).exists()


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("conversations", "0040_renew_view_checkpoints"),
    ]
    operations = [migrations.RunPython(give_rights, migrations.RunPython.noop)]
