"""What people read in the admin of tables, columns, filters and forms is in their language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django import forms
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets, help_text_for_field, label_for_field
from django.contrib.auth.models import Group
from django.core.exceptions import FieldDoesNotExist
from django.core.management import call_command
from django.db.models import Model
from django.test import RequestFactory
from django.utils import translation

from conversations.admin.labels import OWN, SHARED, TABLES
from conversations.models import ApiModel, User

pytestmark = pytest.mark.django_db
#: What is written alike in English and in another language.
ALIKE = {
    "de": {
        "Budget", "Chat", "ID", "Limit", "Minute", "Name", "STARTTLS", "Server", "TLS", "Text",
        "name",
    },
    "es": {"Chat", "Error", "ID", "STARTTLS", "TLS", "bytes", "chat", "chats", "tokens", "no"},
    "fr": {
        "Arguments", "Budget", "Effort", "ID", "Permissions", "STARTTLS", "TLS", "action", "budget",
        "budgets", "effort", "invitation", "invitations",
        "messages", "Minute", "Source", "source", "transformation", "transformations",
    },
}  # fmt: skip


def read_field(model: type[Model], name: str) -> Iterator[Any]:
    """Yield the label, the help text and the choices of a column of a table."""
    yield label_for_field(name, model, admin.site._registry[model])
    try:
        field = model._meta.get_field(name)
    except FieldDoesNotExist:
        return
    yield help_text_for_field(name, model)
    yield from (text for _value, text in getattr(field, "flatchoices", ()))


def read_form(form: forms.BaseForm) -> Iterator[Any]:
    for field in form.fields.values():
        if not isinstance(field.widget, forms.HiddenInput):
            yield field.label
            yield field.help_text
        if isinstance(field, forms.ChoiceField) and not hasattr(field, "queryset"):
            choices: Any = field.choices
            yield from (text for _value, text in choices)


def read_filter(model: type[Model], one: Any, request: Any) -> Iterator[Any]:
    if isinstance(one, str | tuple):
        field: Any = None
        for part in (one if isinstance(one, str) else one[0]).split("__"):
            field = (field.related_model if field else model)._meta.get_field(part)
        yield field.verbose_name
        yield from (text for _value, text in getattr(field, "flatchoices", ()))
    else:
        yield one.title
        made = one(request, {}, model, admin.site._registry[model])
        yield from (text for _value, text in made.lookup_choices)


def read_forms(model: type[Model], request: Any) -> Iterator[Any]:
    """Yield the texts of the forms for a new row and for one that exists."""
    holder = admin.site._registry[model]
    rows = [None, model()] if holder.has_add_permission(request) else [model()]
    for row in rows:
        parts = holder.get_fieldsets(request, row)
        kind = holder.get_form(request, row, change=row is not None)
        form = kind(instance=row) if row else kind()
        for title, options in parts:
            yield title
            yield options.get("description")
        for name in flatten_fieldsets(parts):
            if name not in form.fields:
                yield from read_field(model, name)
        yield from read_form(form)
    for inline in (kind(model, admin.site) for kind in holder.inlines):
        yield inline.verbose_name
        yield inline.verbose_name_plural
        yield from read_form(inline.get_formset(request).form())


def read_tables() -> Iterator[tuple[str, str]]:
    """Yield all that the admin calls a thing, with the table where it stands."""
    request: Any = RequestFactory().get("/")
    request.user = User(username="root", is_staff=True, is_superuser=True)
    for model, holder in sorted(admin.site._registry.items(), key=lambda each: each[0].__name__):
        texts: list[Any] = [model._meta.verbose_name, model._meta.verbose_name_plural]
        for name in holder.get_list_display(request):
            texts += read_field(model, str(name))
        for one in holder.get_list_filter(request):
            texts += read_filter(model, one, request)
        texts += [text for _call, _name, text in holder.get_actions(request).values()]
        texts += read_forms(model, request)
        yield from ((model.__name__, str(text)) for text in texts if text)


@pytest.mark.parametrize("language", sorted(ALIKE))
def test_every_text_of_tables_and_forms_is_translated(language: str) -> None:
    with translation.override("en"):
        english = list(read_tables())
    with translation.override(language):
        shown = list(read_tables())
    assert len(shown) == len(english) > 1_000
    # Names of models, groups and tools are data.
    names = {*ApiModel.objects.values_list("pk", flat=True), "recall"}
    names |= {*Group.objects.values_list("name", flat=True)}
    left = {
        (table, text)
        for (table, text), (_same, other) in zip(english, shown, strict=True)
        if text == other and re.search(r"[^\W\d_]{2}", text)
        if text not in names and not re.fullmatch(r"[a-z]+_[a-z_]+", text)
    }
    assert sorted(each for each in left if each[1] not in ALIKE[language]) == []


def test_no_text_of_tables_and_forms_is_the_name_of_a_column() -> None:
    with translation.override("en"):
        texts = {text for _table, text in read_tables()}
    assert not {text for text in texts if re.search(r"\bmicros\b|[a-z]_(?:at|micros)\b", text)}


def test_names_of_tables_and_fields_need_no_migration() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_every_name_is_of_a_field_that_exists() -> None:
    models = {model.__name__: model for model in apps.get_app_config("conversations").get_models()}
    fields = {name: {each.name for each in models[name]._meta.get_fields()} for name in models}
    assert set(TABLES) <= set(models)
    assert {(name, each) for name, own in OWN.items() for each in {*own} - fields[name]} == set()
    assert set(SHARED) <= set().union(*fields.values())
