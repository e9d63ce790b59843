"""Where results come from, the words that a call would carry out, and chats that send nothing unasked."""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models
from django.apps.registry import Apps


#: The built-in tools by where their results come from, and the prefix of tools of MCP servers.
_TOOLS = {
    "workspace": ("list_files", "read_file", "search_files"),
    "mail": ("list_mail_folders", "read_mail", "save_attachment", "search_mail"),
    "page": ("fetch_url",),
}
_MCP = "mcp__"


def _name_origins(apps: Apps, _editor: object) -> None:
    calls = apps.get_model("conversations", "ToolCall").objects.filter(started_at__isnull=False)
    for origin, names in _TOOLS.items():
        calls.filter(name__in=names).update(origin=origin)
    calls.filter(name__startswith=_MCP).update(origin="mcp")


class Migration(migrations.Migration):

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('conversations', '0031_account_events'),
    ]

    operations = [
        migrations.AddField(
            model_name='approval',
            name='words',
            field=models.TextField(blank=True, db_default='', default=''),
        ),
        migrations.AddField(
            model_name='conversation',
            name='asks_before_egress',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='toolcall',
            name='origin',
            field=models.CharField(blank=True, db_default='', default='', max_length=9),
        ),
        migrations.AlterField(
            model_name='approval',
            name='reason',
            field=models.CharField(choices=[('write', 'it changes something'), ('private', 'it tells others, and private data was read before'), ('egress', 'it tells others, and nothing leaves here unasked')], max_length=8),
        ),
        migrations.CreateModel(
            name='EgressRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='egress_rule', to='auth.group')),
            ],
            options={
                'verbose_name': 'group that sends nothing unasked',
                'verbose_name_plural': 'groups that send nothing unasked',
                'ordering': ['group_id'],
            },
        ),
        migrations.RunPython(_name_origins, migrations.RunPython.noop),
    ]
