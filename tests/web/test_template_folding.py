"""A folded template says what Django's engine says with the template as it is written."""

from __future__ import annotations

import pytest
from django.template import Context, Engine, Template
from django.template.base import TextNode
from django.utils.translation import override

from agentweb.site.template_folding import ConstantNode, fold

LOADED = "{% load i18n agentweb %}"
PARTS = (
    "<p>{# nothing #}one{% comment %}two{% endcomment %}</p>",
    "<b>{% translate 'Copy' %}</b>{% icon 'copy' %}{% translate 'Who & what' %}",
    "{% translate 'Copy' as label %}{{ label }}{% icon name %}{% translate name %}",
    "{% translate 'Copy'|upper %}{% translate 'May' context 'verb' %}",
    "{% if n %}{% translate 'Copy' %}: {{ n }}{% elif m %}{% icon 'pen' %}{% else %}b{% endif %}",
    "{% for a in many %}{% icon 'pen' %}<i>{{ a }}</i>{% empty %}{% icon 'pin' %}{% endfor %}",
    "{% with a=n %}{{ a }} {{ big }} {{ part }} {{ yes }} {{ words }} {{ missing }}{% endwith %}",
    "{% autoescape off %}{% translate 'Who & what' %} {{ words }} {{ n }}{% endautoescape %}",
)
VALUES = {
    "n": 3, "m": 0, "big": 1_234_567, "part": 1_234.5, "yes": True, "many": [1_000, "<x>"],
    "words": "a < b", "name": "copy",
}  # fmt: skip


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("has_separators", [False, True])
def test_a_folded_template_says_the_same(part: str, has_separators: bool, settings: object) -> None:
    settings.USE_THOUSAND_SEPARATOR = has_separators  # type: ignore[attr-defined]
    plain, folded = Template(LOADED + part), Template(LOADED + part)
    fold(folded)
    for language in ("en", "de", "en"):
        with override(language):
            wanted = plain.render(Context(VALUES))
            assert folded.render(Context(VALUES)) == wanted
            assert folded.render(Context()) == plain.render(Context())


def test_what_depends_on_the_language_only_is_one_node() -> None:
    folded = Template(f"{LOADED}<b>{{% translate 'Copy' %}}</b>{{% icon 'copy' %}}{{{{ name }}}}")
    fold(folded)
    assert [type(node) for node in folded.nodelist[:-1]] == [ConstantNode]
    silent = Template(f"{LOADED}{{# nothing #}}<p>{{% comment %}}x{{% endcomment %}}</p>")
    fold(silent)
    assert [node.s for node in silent.nodelist if isinstance(node, TextNode)] == ["<p></p>"]


def test_a_page_that_extends_another_is_folded_with_its_blocks() -> None:
    sources = {
        "base": f"{LOADED}{{% translate 'Copy' %}}-{{% block a %}}x{{% endblock %}}-{{{{ n }}}}",
        "page": f"{{# first #}}{{% extends 'base' %}}{LOADED}"
        "{% block a %}{{ block.super }}{% icon 'pen' %}{% translate 'Copy' %}{% endblock %}",
    }
    engine = Engine(
        loaders=[("django.template.loaders.locmem.Loader", sources)],
        libraries={
            "i18n": "django.templatetags.i18n", "agentweb": "conversations.templatetags.agentweb"
        },
    )  # fmt: skip
    wanted = engine.get_template("page").render(Context({"n": 7}))
    page = engine.get_template("page")
    fold(page)
    assert page.render(Context({"n": 7})) == wanted
