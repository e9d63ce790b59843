"""A part of a template that is cached by its values is rendered once for them, and never for a page
with forms of its own."""

from __future__ import annotations

import pytest
from django.template import Context, Template
from django.utils.translation import override

from conversations.templatetags import fragments

TEXT = (
    "{% load fragments i18n %}{% cached_by name %}"
    "{{ name }}, {{ other }}: {% translate 'Copy' %}{% endcached_by %}"
)


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Template:
    monkeypatch.setattr(fragments, "_parts", {})
    return Template(TEXT)


def render(part: Template, **values: object) -> str:
    return part.render(Context(values))


def test_a_part_is_rendered_once_for_its_values_and_language(part: Template) -> None:
    assert render(part, name="a<", other=1) == "a&lt;, 1: Copy"
    assert render(part, name="a<", other=2) == "a&lt;, 1: Copy"
    assert render(part, name="b", other=2) == "b, 2: Copy"
    with override("de"):
        assert render(part, name="b", other=3) == "b, 3: Kopieren"


def test_a_page_with_a_token_renders_every_part_anew(part: Template) -> None:
    for other in (1, 2):
        assert render(part, name="a", other=other, csrf_token="token") == f"a, {other}: Copy"
    assert fragments._parts == {}


def test_no_more_than_so_many_parts_are_kept(
    part: Template, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fragments, "_MOST", 2)
    for name in range(5):
        render(part, name=name)
        assert len(fragments._parts) <= 2
