"""A rule for the results of one tool, as written in a setting: `fetch_url=cap 20000`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from conversations.context.translation import gettext_noop, mark_recorded

Way = Literal["keep", "head_tail", "json", "cap", "verbatim"]
_RULE = re.compile(
    r"([a-zA-Z0-9_-]{1,128}) *= *(?:(keep|head_tail|json|verbatim)|cap +([1-9]\d{2,7}))"
)
_NO_RULE = mark_recorded(
    gettext_noop("%(name)s is not tool=keep, head_tail, json, verbatim or cap N")
)


@dataclass(frozen=True, slots=True)
class Rule:
    """`cap` is the limit in characters when the way is cap."""

    way: Way
    cap: int = 0


def parse_tool_rule(text: str) -> tuple[str, Rule]:
    """Parse `tool=rule`; raises ValueError when it is malformed."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise ValueError(_NO_RULE % {"name": repr(text)})
    name, way, cap = found.groups()
    match way:
        case "keep" | "head_tail" | "json" | "verbatim":
            return name, Rule(way)
        case _:
            return name, Rule("cap", int(cap))
