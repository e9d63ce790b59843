"""Sessions move to a table that knows their persons, so nobody is logged out."""

from datetime import UTC, datetime

import django.db.models.deletion
from django.conf import settings
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.db import migrations, models
from django.utils import timezone


def move_sessions(apps, schema_editor):
    using = schema_editor.connection.alias
    old = apps.get_model("sessions", "Session").objects.using(using)
    new = apps.get_model("conversations", "Session").objects.using(using)
    people = set(
        apps.get_model("conversations", "User").objects.using(using).values_list("pk", flat=True)
    )
    for row in old.filter(expire_date__gt=timezone.now()).iterator():
        data = SessionStore().decode(row.session_data)
        user_id = int(data.get(SESSION_KEY, 0))
        if user_id in people:
            new.create(
                session_key=row.session_key,
                session_data=row.session_data,
                expire_date=row.expire_date,
                user_id=user_id,
                began_at=_read_time(data.get("began")),
                seen_at=_read_time(data.get("moved")),
            )
    old.all().delete()


def _read_time(seconds):
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0042_documents'),
        ('sessions', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Session',
            fields=[
                ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                ('session_data', models.TextField(verbose_name='session data')),
                ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                ('device', models.CharField(blank=True, max_length=60)),
                ('network', models.CharField(blank=True, max_length=60)),
                ('began_at', models.DateTimeField(null=True)),
                ('seen_at', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name': 'session',
                'verbose_name_plural': 'sessions',
                'abstract': False,
            },
        ),
        migrations.RunPython(move_sessions, migrations.RunPython.noop),
    ]
