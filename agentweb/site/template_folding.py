"""Folds the parts of a template that depend on nothing but the language into one node each.

Two thirds of the nodes of a template are text, translations, icons and tags that write nothing, and
the engine takes longer to visit one than to join what it says. Runs of them are rendered once per
language, when they are first needed. What depends on the context is left as it is, but for numbers
in places without a filter, which are ids and counts: the engine asks the language for its
separators before it writes each of them as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from django.conf import settings
from django.template import Context, Template
from django.template.base import (
    FilterExpression,
    Node,
    NodeList,
    TextNode,
    Variable,
    VariableNode,
    render_value_in_context,
)
from django.template.defaulttags import CommentNode, IfNode, LoadNode
from django.template.library import SimpleNode
from django.templatetags.i18n import TranslateNode
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from conversations.templatetags.agentweb import icon

_SILENT = (LoadNode, CommentNode)


class ConstantNode(Node):
    """A run of nodes that say the same in every context; what they say is safe already."""

    child_nodelists = ()

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = NodeList(nodes)
        self._said: dict[str | None, SafeString] = {}

    def render(self, context: Context) -> SafeString:
        language = get_language()
        found = self._said.get(language)
        if found is None:
            found = self._said[language] = self._nodes.render(context)
        return found


class ShownNode(VariableNode):
    """A variable; a whole number is written without a look at the language's separators."""

    def render(self, context: Context) -> str:
        value = self.filter_expression.resolve(context)
        if type(value) is int and not settings.USE_THOUSAND_SEPARATOR:
            return str(value)
        return render_value_in_context(value, context)


def fold(template: Template) -> None:
    """Fold a template that was just compiled."""
    _fold_list(template.nodelist)


def _fold_list(nodes: NodeList) -> None:
    folded = list[Node]()
    for is_constant, run in groupby(nodes, _is_constant):
        found = list(run)
        folded += _join(found) if is_constant else found
    for at, node in enumerate(folded):
        for below in _list_below(node):
            _fold_list(below)
        if type(node) is VariableNode:
            folded[at] = ShownNode(node.filter_expression)
            folded[at].token, folded[at].origin = node.token, node.origin
    nodes[:] = folded


def _join(run: list[Node]) -> list[Node]:
    """Return a run of constant nodes as one, if they say anything."""
    said = [node for node in run if not isinstance(node, _SILENT)]
    texts = [node.s for node in said if isinstance(node, TextNode)]
    if len(texts) < len(said):
        return [ConstantNode(said)]
    # As text, because the engine looks for the tag `extends` behind nothing else.
    return [TextNode("".join(texts))] if texts else []


def _list_below(node: Node) -> Iterator[NodeList]:
    if isinstance(node, IfNode):
        yield from (nodes for _, nodes in node.conditions_nodelists)
        return
    for name in node.child_nodelists:
        nodes = getattr(node, name, None)
        if nodes is not None:
            yield nodes


def _is_constant(node: Node) -> bool:
    if isinstance(node, TranslateNode):
        words = node.filter_expression
        return not (node.asvar or node.message_context or words.filters) and _is_literal(words)
    if isinstance(node, SimpleNode):
        return node.func is icon and not node.target_var and all(map(_is_literal, node.args))
    return isinstance(node, (TextNode, *_SILENT))


def _is_literal(value: FilterExpression) -> bool:
    return not value.filters and not (isinstance(value.var, Variable) and value.var.lookups)
