"""What was written before there were versions is one path: each turn follows the one before it."""

from django.db import migrations
from django.db.models import Max, OuterRef, Subquery
from django.db.models.functions import Coalesce


def join_paths(apps, schema_editor):
    turns = apps.get_model("conversations", "Turn").objects
    conversations = apps.get_model("conversations", "Conversation").objects
    before = turns.filter(conversation=OuterRef("conversation"), number__lt=OuterRef("number"))
    last = before.order_by("-number").values("number")[:1]
    turns.update(parent=Coalesce(Subquery(last), 0))
    mine = turns.filter(conversation=OuterRef("pk")).order_by().values("conversation")
    newest = mine.annotate(last=Max("number")).values("last")
    conversations.update(leaf=Coalesce(Subquery(newest), 0))


class Migration(migrations.Migration):

    dependencies = [
        ("conversations", "0007_branches"),
    ]

    operations = [migrations.RunPython(join_paths, migrations.RunPython.noop)]
