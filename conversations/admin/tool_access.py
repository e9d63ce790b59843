"""Tool rules for everybody and for groups; changes are in Django's own log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from conversations.admin.base import ShownLookups
from conversations.models import McpTool, ToolRule
from conversations.toolbox.web_search import NAME
from tools.framework.registry import TOOLS

if TYPE_CHECKING:
    _Form = forms.ModelForm[Any]
else:
    _Form = forms.ModelForm


class RuleForm(_Form):
    """A rule for a tool that runs here; a rule whose tool is gone keeps its name."""

    #: Tools that the API runs, to which a rule applies as well.
    served: ClassVar[frozenset[str]] = frozenset()

    def clean_tool(self) -> str:
        name: str = self.cleaned_data["tool"]
        is_kept = "tool" not in self.changed_data
        if is_kept or name in TOOLS or name in self.served:
            return name
        if McpTool.objects.filter(call_name=name).exists():
            return name
        raise ValidationError(_("There is no tool with this name."))


class AccessForm(RuleForm):
    served = frozenset({NAME})


@admin.register(ToolRule)
class ToolRuleAdmin(ShownLookups):
    form = AccessForm
    list_display = ("tool", "group", "is_allowed")
    list_filter = ("is_allowed", "group")
    list_select_related = ("group",)
    search_fields = ("tool",)
    show_full_result_count = False
