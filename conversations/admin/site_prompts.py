"""Prompts of the site: staff with the right write them; people see them and copy them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import ShownLookups
from conversations.models import SitePrompt
from conversations.web.forms.saved_prompts import PromptTextField

if TYPE_CHECKING:
    _ModelForm = forms.ModelForm[SitePrompt]
else:
    _ModelForm = forms.ModelForm


class SitePromptForm(_ModelForm):
    text = PromptTextField(
        label=_("Text"),
        help_text=_(
            "{{topic}} has to be filled in, {{tone=friendly}} has a default,"
            " {{length:short|long}} is a choice. Write \\{{ for two braces as they are."
        ),
    )

    class Meta:
        model = SitePrompt
        fields = ("title", "command", "text", "groups")


@admin.register(SitePrompt)
class SitePromptAdmin(ShownLookups):
    form = SitePromptForm
    list_display = ("title", "command", "changed_at")
    list_filter = ("groups",)
    search_fields = ("title", "command")
    filter_horizontal = ("groups",)
    ordering = ("title",)
    show_full_result_count = False
