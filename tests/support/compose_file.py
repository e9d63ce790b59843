"""Reads compose.yaml: the subset of YAML that it uses, strictly, with compose's own variables.

Blocks of mappings and lists by their indentation, flow lists and mappings, anchors, aliases and
merges; variables are replaced as compose does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_ENTRY = re.compile(r"(?P<key>[\w<][\w.<-]*):(?: (?P<value>.*))?$")
_FLOW = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]|[^\[\]{},"]+')
_VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?:(:-|:\?)([^}]*))?\})")


class _Reader:
    def __init__(self, text: str) -> None:
        rows = [
            row for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#")
        ]
        self.rows = [(len(row) - len(row.lstrip()), row.strip()) for row in rows]
        self.at = 0
        self.anchors: dict[str, Any] = {}

    def block(self, indent: int) -> Any:
        """Parse all rows of one indentation: a mapping or a list."""
        if self.rows[self.at][1].startswith("- "):
            found: Any = []
            while self._is_at(indent):
                found.append(self._scalar(self.rows[self.at][1][2:]))
                self.at += 1
            return found
        own: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        while self._is_at(indent):
            self._entry(own, merged, indent)
        return merged | own

    def _is_at(self, indent: int) -> bool:
        return self.at < len(self.rows) and self.rows[self.at][0] == indent

    def _entry(self, own: dict[str, Any], merged: dict[str, Any], indent: int) -> None:
        match = _ENTRY.match(self.rows[self.at][1])
        assert match, self.rows[self.at]
        self.at += 1
        key, text, anchor = match["key"], match["value"] or "", ""
        if text.startswith("&"):
            anchor, _, text = text[1:].partition(" ")
        if text:
            value = self._scalar(text)
        elif self.at < len(self.rows) and self.rows[self.at][0] > indent:
            value = self.block(self.rows[self.at][0])
        else:
            value = None
        if anchor:
            self.anchors[anchor] = value
        if key == "<<":
            merged.update(value)
        else:
            assert key not in own, key
            own[key] = value

    def _scalar(self, text: str) -> Any:
        if text.startswith("*"):
            return self.anchors[text[1:]]
        if text[0] in "[{":
            return _flow(_FLOW.findall(text))
        return _plain(text)


def _flow(tokens: list[str]) -> Any:
    """Parse one flow list or mapping from the front of the tokens."""
    if tokens.pop(0) == "[":
        items = []
        while tokens[0] != "]":
            items.append(_flow(tokens) if tokens[0] in "[{" else _plain(tokens.pop(0).strip()))
            _pass_comma(tokens)
        tokens.pop(0)
        return items
    found = {}
    while tokens[0] != "}":
        key, _, value = tokens.pop(0).partition(":")
        found[key.strip()] = _plain(value.strip())
        _pass_comma(tokens)
    tokens.pop(0)
    return found


def _pass_comma(tokens: list[str]) -> None:
    while tokens and (tokens[0] == "," or not tokens[0].strip()):
        tokens.pop(0)


def _plain(text: str) -> Any:
    if text.startswith('"'):
        return text[1:-1].replace('\\"', '"')
    if text in ("true", "false"):
        return text == "true"
    return int(text) if text.isdigit() else text


def read(text: str) -> dict[str, Any]:
    reader = _Reader(text)
    found: dict[str, Any] = reader.block(0)
    assert reader.at == len(reader.rows), reader.rows[reader.at]
    return found


def filled(value: Any, variables: Mapping[str, str]) -> Any:
    """Replace variables as compose does; raises an error for a required one that is not set."""
    if isinstance(value, dict):
        return {key: filled(one, variables) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, variables) for one in value]
    if not isinstance(value, str):
        return value

    def given(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        value = variables.get(match[2], "")
        if not value and match[3] == ":?":
            raise KeyError(match[2])
        return value or (match[4] or "" if match[3] == ":-" else "")

    return _VARIABLE.sub(given, value)
