"""Folds a compiled template, so that the engine does less to say the same.

Two thirds of the nodes of a template are text, translations, icons and tags that write nothing, and
the engine takes longer to visit one than to join what it says. Runs of them become one node, which
is rendered once per language, when it is first needed. A whole number without a filter, an id or a
count, is written without asking the language for its separators. A path of names is first looked
up as what nearly all are, attributes of a value. An included template is found once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

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
from django.template.defaulttags import (
    CommentNode,
    CycleNode,
    IfChangedNode,
    IfNode,
    LoadNode,
    ResetCycleNode,
)
from django.template.library import SimpleNode
from django.template.loader_tags import BlockNode, ExtendsNode, IncludeNode
from django.template.smartif import TokenBase
from django.templatetags.i18n import TranslateNode
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from conversations.templatetags.agentweb import icon

_SILENT = (LoadNode, CommentNode)
#: Nodes that keep something for their template while it is rendered.
_STATEFUL = (BlockNode, ExtendsNode, CycleNode, IfChangedNode, ResetCycleNode)
_NONE: Any = object()


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


class PathVariable(Variable):
    """A path of names; all but attributes that are no methods is left to the engine."""

    def resolve(self, context: Any) -> Any:
        try:
            found = self._look_up(context)
        except Exception:
            # The engine says nothing for some of them.
            found = _NONE
        return super().resolve(context) if found is _NONE or callable(found) else found

    def _look_up(self, context: Context) -> Any:
        (first, *names), found = self.lookups or ("",), _NONE
        for values in reversed(context.dicts):
            if first in values:
                found = values[first]
                break
        for name in names:
            if hasattr(type(found), "__getitem__"):
                # The engine asks for an item before an attribute.
                return _NONE
            found = getattr(found, name, _NONE)
        return found


class IncludedNode(IncludeNode):
    """A template that is included by its name."""

    def __init__(self, plain: IncludeNode) -> None:
        super().__init__(plain.template, extra_context=plain.extra_context)
        self._nodes: NodeList | None = None
        self._is_plain = False

    def render(self, context: Context) -> SafeString:
        if self._nodes is None and context.template is not None:
            found = context.template.engine.get_template(str(self.template.var))
            self._is_plain = not any(map(found.nodelist.get_nodes_by_type, _STATEFUL))
            self._nodes = found.nodelist
        if self._nodes is None or not self._is_plain:
            return super().render(context)
        values = {name: value.resolve(context) for name, value in self.extra_context.items()}
        with context.push(**values):
            return self._nodes.render(context)


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
    nodes[:] = map(_fold_node, folded)


def _fold_node(node: Node) -> Node:
    for below in _list_below(node):
        _fold_list(below)
    for words in _list_expressions(list(vars(node).values())):
        if isinstance(words.var, Variable) and words.var.lookups and not words.var.translate:
            words.var = PathVariable(words.var.var)
    if type(node) is VariableNode:
        folded: Node = ShownNode(node.filter_expression)
    elif type(node) is IncludeNode and not node.isolated_context and _is_literal(node.template):
        folded = IncludedNode(node)
    else:
        return node
    folded.token, folded.origin = node.token, node.origin
    return folded


def _list_expressions(value: object) -> Iterator[FilterExpression]:
    """Return the expressions that a node has, in whatever way."""
    if isinstance(value, FilterExpression):
        yield value
    elif isinstance(value, TokenBase):
        yield from _list_expressions(list(vars(value).values()))
    elif isinstance(value, dict):
        yield from _list_expressions(list(value.values()))
    elif isinstance(value, (list, tuple)) and not isinstance(value, NodeList):
        for one in value:
            yield from _list_expressions(one)


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
