"""Every append-only row stands in a chain, and chains are anchored outside the database.

What was entered before is taken into the chains as it is found: entries of calls at the end of
their conversation's chain, all others in the site's.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from uuid import UUID

import django.utils.timezone
from django.db import migrations, models

FIELDS = {
    "LedgerEntry": (
        "window_id", "call_id", "kind", "amount", "reason", "actor_id", "created_at", "form",
    ),
    "Grant": (
        "budget_id", "user_id", "amount", "starts_at", "expires_at", "reason", "actor_id",
        "created_at", "form",
    ),
    "Crossing": ("window_id", "percent", "spent", "limit", "created_at"),
    "McpDecision": (
        "server_id", "tool", "kind", "actor_id", "note", "definition", "digest", "created_at",
    ),
    "Erasure": (
        "owner_id", "conversation", "begun_at", "deleted_at", "due_at", "messages",
        "transformations", "calls", "links", "tail", "cost_micros", "usage", "erased_at",
    ),
}  # fmt: skip


def plain(value):
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case UUID():
            return str(value)
        case _:
            return value


def link(row, kind, end):
    fields = {name: plain(getattr(row, name)) for name in FIELDS[kind]}
    text = json.dumps(["v1", kind, end.links + 1, fields], sort_keys=True, separators=(",", ":"))
    digest = "sha256:" + hashlib.sha256((end.chain + "\n" + text).encode()).hexdigest()
    row.link, row.chain = end.links + 1, digest
    end.links, end.chain = row.link, row.chain


def take_in(apps, schema_editor):
    if schema_editor.connection.vendor == "postgresql":
        # Keys are checked when the transaction ends; a table with such checks open is not altered.
        schema_editor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    for kind in FIELDS:
        table = apps.get_model("conversations", kind)._meta.db_table
        where = f' ON "{table}"' if schema_editor.connection.vendor == "postgresql" else ""
        # It comes back after the migrations, as all of them do.
        schema_editor.execute(f'DROP TRIGGER IF EXISTS "{table}_keep_update"{where}')
    take_in_calls(apps)
    site = apps.get_model("conversations", "SiteChain")(id=1)
    for kind in FIELDS:
        rows = apps.get_model("conversations", kind).objects.order_by("pk")
        if kind == "LedgerEntry":
            rows = rows.filter(call=None)
        save_links(rows, kind, lambda row: site)
    site.save(force_insert=True)
    apps.get_model("conversations", "AnchorMark")(id=1).save(force_insert=True)


def take_in_calls(apps):
    conversations = apps.get_model("conversations", "Conversation").objects
    rows = apps.get_model("conversations", "LedgerEntry").objects.exclude(call=None)
    rows = rows.annotate(owner=models.F("call__conversation")).order_by("owner", "pk")
    ends = {}

    def end_of(row):
        if row.owner not in ends:
            save_ends(conversations, ends)
            ends[row.owner] = conversations.only("links", "chain").get(pk=row.owner)
        return ends[row.owner]

    save_links(rows, "LedgerEntry", end_of)
    save_ends(conversations, ends)


def save_ends(conversations, ends):
    for end in ends.values():
        conversations.filter(pk=end.pk).update(links=end.links, chain=end.chain)
    ends.clear()


def save_links(rows, kind, end_of):
    done = []
    for row in rows.iterator(chunk_size=500):
        link(row, kind, end_of(row))
        done.append(row)
        if len(done) == 500:
            rows.model.objects.bulk_update(done, ["link", "chain"])
            done.clear()
    rows.model.objects.bulk_update(done, ["link", "chain"])


def chained(model_name):
    return [
        migrations.AddField(
            model_name=model_name,
            name="link",
            field=models.PositiveBigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name=model_name,
            name="chain",
            field=models.CharField(default="", max_length=80),
            preserve_default=False,
        ),
    ]


def dated(model_name):
    return migrations.AlterField(
        model_name=model_name,
        name="created_at",
        field=models.DateTimeField(default=django.utils.timezone.now),
    )


class Migration(migrations.Migration):
    dependencies = [("conversations", "0020_web_search")]

    operations = [
        migrations.CreateModel(
            name="SiteChain",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("links", models.PositiveBigIntegerField(default=0)),
                ("chain", models.CharField(blank=True, max_length=80)),
                ("anchored", models.PositiveBigIntegerField(default=0)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(id=1), name="one_site_chain")],
            },
        ),
        migrations.CreateModel(
            name="AnchorMark",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("number", models.PositiveBigIntegerField(default=0)),
                ("digest", models.CharField(blank=True, max_length=80)),
                ("written_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(id=1), name="one_anchor_mark")],
            },
        ),
        migrations.RemoveField(model_name="blob", name="created_at"),
        migrations.RemoveField(model_name="envelope", name="created_at"),
        migrations.RenameField(model_name="erasure", old_name="chain", new_name="tail"),
        *chained("crossing"),
        *chained("erasure"),
        *chained("grant"),
        *chained("ledgerentry"),
        *chained("mcpdecision"),
        *map(dated, ("crossing", "grant", "ledgerentry", "mcpdecision")),
        migrations.AddField(
            model_name="conversation",
            name="anchored",
            field=models.PositiveBigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddIndex(
            model_name="conversation",
            index=models.Index(
                condition=models.Q(links__gt=models.F("anchored")),
                fields=["id"],
                name="conversation_unanchored",
            ),
        ),
        migrations.RunPython(take_in, migrations.RunPython.noop),
    ]
