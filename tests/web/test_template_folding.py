"""A folded template says what Django's engine says with the template as it is written."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from django.core.exceptions import ObjectDoesNotExist
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
    "{{ it.name }}{{ it.many.1 }}{{ it.call }}{{ it.gone }}",
    "{{ it.broken.x }}{{ it.name.x.y }}",
    "{{ table.key }}{{ table.call }}{{ nothing.name }}{% if it.gone %}a{% endif %}",
    "{% with x=it.name y=table.key %}{% for a in it.many %}{{ a }}{{ y }}{% endfor %}{% endwith %}",
    "{% blocktranslate trimmed with x=it.name|upper y=n %}{{ x }}: {{ y }}{% endblocktranslate %}",
    "{% autoescape off %}{% translate 'Who & what' %} {{ words }} {{ n }}{% endautoescape %}",
)


@dataclass
class Thing:
    """What has attributes, methods and items, and some that fail."""

    name: str = "a < b"
    many: tuple[object, ...] = (1_000, "<x>")

    def call(self) -> str:
        return f"{self.name} called"

    @property
    def broken(self) -> str:
        raise ObjectDoesNotExist


VALUES = {
    "it": Thing(), "table": {"key": "a value", "call": Thing().call}, "nothing": None,
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


def test_a_property_that_fails_fails_as_in_the_engine() -> None:
    class Failing:
        @property
        def name(self) -> str:
            raise KeyError("name")

    folded = Template("{{ it.name }}")
    fold(folded)
    with pytest.raises(KeyError):
        folded.render(Context({"it": Failing()}))


def test_a_page_that_extends_and_includes_others_is_folded_with_them() -> None:
    sources = {
        "tree": "<{{ node.0 }}{% for node in node.1 %}{% include 'tree' %}{% endfor %}>",
        "turns": "{% for a in many %}{% cycle 'odd' 'even' %}"
        "{% ifchanged n %}{{ n }}{% endifchanged %}{% endfor %}",
        "alone": "[{{ n }}{{ x }}]",
        "base": f"{LOADED}{{% translate 'Copy' %}}-{{% block a %}}x{{% endblock %}}-{{{{ n }}}}",
        "page": f"{{# first #}}{{% extends 'base' %}}{LOADED}"
        "{% block a %}{{ block.super }}{% icon 'pen' %}{% translate 'Copy' %}"
        "{% include 'tree' with node=nodes %}{% include 'turns' %}{% include 'turns' %}"
        "{% include 'alone' with x=1 only %}{% include 'alone' %}{% include name %}"
        "{% include './alone' %}{% endblock %}",
    }
    engine = Engine(
        loaders=[("django.template.loaders.locmem.Loader", sources)],
        libraries={
            "i18n": "django.templatetags.i18n", "agentweb": "conversations.templatetags.agentweb"
        },
    )  # fmt: skip
    values = {"n": 7, "many": [1, 2, 3], "name": "alone", "nodes": ["a", [["b", []], ["c", []]]]}
    wanted = engine.get_template("page").render(Context(values))
    page = engine.get_template("page")
    fold(page)
    for _ in range(2):
        assert page.render(Context(values)) == wanted
