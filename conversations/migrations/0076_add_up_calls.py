"""Add up the calls that have ended before their sums were kept with the conversation.

Some conversations at a time, each time in a transaction of its own, which locks no others. What was
added up before an interruption is added up again.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations, transaction

#: Conversations of one transaction.
SOME = 500
_RESULTS = """
FROM conversations_apiresult r JOIN conversations_apicall c ON c.id = r.call_id
WHERE c.conversation_id = conversations_conversation.id"""
_ADD_UP = f"""
UPDATE conversations_conversation
SET ended_calls = (SELECT COUNT(*) {_RESULTS}),
  cost_micros = (SELECT COALESCE(SUM(r.cost_micros), 0) {_RESULTS})
WHERE id IN ({{places}})"""  # noqa: S608 - nothing but places for parameters


def add_up_calls(apps: Any, schema_editor: Any) -> None:
    rows = apps.get_model("conversations", "Conversation").objects.order_by("pk")
    done = 0
    while keys := list(rows.filter(pk__gt=done).values_list("pk", flat=True)[:SOME]):
        with transaction.atomic(), schema_editor.connection.cursor() as cursor:
            # Locked before they are added up, so that no call ends unseen.
            found = list(rows.select_for_update().filter(pk__in=keys).values_list("pk", flat=True))
            if found:
                cursor.execute(_ADD_UP.format(places=", ".join(["%s"] * len(found))), found)
        done = keys[-1]


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("conversations", "0075_sums_of_calls"),
    ]

    operations = [
        migrations.RunPython(add_up_calls, migrations.RunPython.noop),
    ]
