"""`cached_by`: a part of a template that depends on a few values only is rendered once for them.

Every frame of a turn has the same buttons and links of its conversation again. A page, whose forms
carry a token, renders all parts anew.
"""

from __future__ import annotations

from typing import Any

from django import template
from django.template.base import FilterExpression, Node, NodeList, Parser, Token
from django.utils.safestring import SafeString
from django.utils.translation import get_language

register = template.Library()
#: Parts that one process keeps at most.
_MOST = 2_000
_parts: dict[tuple[Any, ...], SafeString] = {}


class CachedNode(Node):
    """A part, by the language and the values that it depends on."""

    child_nodelists = ("nodelist",)

    def __init__(self, nodelist: NodeList, values: list[FilterExpression]) -> None:
        self.nodelist, self._values = nodelist, values

    def render(self, context: template.Context) -> SafeString:
        if context.get("csrf_token"):
            return self.nodelist.render(context)
        key = (self, get_language(), *(value.resolve(context) for value in self._values))
        found = _parts.get(key)
        if found is None:
            found = self.nodelist.render(context)
            if len(_parts) >= _MOST:
                _parts.clear()
            _parts[key] = found
        return found


@register.tag
def cached_by(parser: Parser, token: Token) -> CachedNode:
    """Cache what follows by these values, all that it depends on but for the language."""
    values = [parser.compile_filter(word) for word in token.split_contents()[1:]]
    nodelist = parser.parse(("endcached_by",))
    parser.delete_first_token()
    return CachedNode(nodelist, values)
