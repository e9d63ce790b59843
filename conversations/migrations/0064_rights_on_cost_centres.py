"""Let the roles that see and set budgets do so with cost centres, on sites that exist."""

from django.apps import apps as present
from django.contrib.auth.management import create_permissions
from django.db import migrations

#: Of each role, what it may do, and the right by which it is known to be as it was shipped.
ROLES = (
    ("Administrator", ["view"], "view_budget"),
    ("Budget officer", ["view", "add", "change"], "change_budget"),
)


def give_rights(apps, schema_editor):
    group, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    using = schema_editor.connection.alias
    ours = permission.objects.using(using).filter(content_type__app_label="conversations")
    for name, verbs, kept in ROLES:
        for found in group.objects.using(using).filter(name=name):
            if not ours.filter(group=found, codename=kept).exists():
                continue
            # They are made after all migrations, which on this way is too late.
            config = present.get_app_config("conversations")
            create_permissions(config, verbosity=0, using=using, apps=apps)
            names = [f"{verb}_costcentre" for verb in verbs]
            found.permissions.add(*ours.filter(codename__in=names))


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("conversations", "0063_cost_centres"),
    ]
    operations = [migrations.RunPython(give_rights, migrations.RunPython.noop)]
