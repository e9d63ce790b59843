from __future__ import annotations

import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

KEY = {"auto_created": True, "primary_key": True, "serialize": False, "verbose_name": "ID"}


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("conversations", "0013_approvals"),
    ]

    operations = [
        migrations.CreateModel(
            name="ToolRule",
            fields=[
                ("id", models.BigAutoField(**KEY)),
                (
                    "tool",
                    models.CharField(
                        max_length=128,
                        validators=[
                            django.core.validators.RegexValidator(
                                "\\A[a-zA-Z0-9_-]{1,128}\\Z",
                                "Letters, digits, _ and -, as the model calls it.",
                            )
                        ],
                    ),
                ),
                ("is_allowed", models.BooleanField(default=False, verbose_name="allowed")),
                (
                    "group",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: everybody for whom no group says otherwise.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tool_rules",
                        to="auth.group",
                    ),
                ),
            ],
            options={"ordering": ["tool", "group_id"]},
        ),
        migrations.CreateModel(
            name="ToolSwitch",
            fields=[
                ("id", models.BigAutoField(**KEY)),
                ("tool", models.CharField(max_length=128)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "conversation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="tool_switches",
                        to="conversations.conversation",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            "toolrule",
            models.UniqueConstraint(
                fields=("tool",),
                condition=models.Q(group=None),
                name="one_site_tool_rule",
                violation_error_message="There is a rule for this tool already.",
            ),
        ),
        migrations.AddConstraint(
            "toolrule",
            models.UniqueConstraint(
                fields=("tool", "group"),
                name="one_group_tool_rule",
                violation_error_message="There is a rule for this tool and group already.",
            ),
        ),
        migrations.AddConstraint(
            "toolswitch",
            models.UniqueConstraint(fields=("conversation", "tool"), name="tool_switched_once"),
        ),
    ]
