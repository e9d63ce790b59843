"""Applies frames to a page: a small equivalent of htmx's out-of-band swaps."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset(("area", "br", "col", "hr", "img", "input", "link", "meta", "rect", "use", "path"))


@dataclass
class Node:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.attributes.get("id", "")

    @property
    def text(self) -> str:
        parts = (child if isinstance(child, str) else child.text for child in self.children)
        return " ".join("".join(parts).split())

    def find(self, id: str) -> Node | None:
        if self.id == id:
            return self
        found = (child.find(id) for child in self.children if isinstance(child, Node))
        return next((node for node in found if node), None)

    def swap(self, id: str, node: Node) -> bool:
        """Replace the node with that id."""
        for at, child in enumerate(self.children):
            if isinstance(child, Node):
                if child.id == id:
                    self.children[at] = node
                    return True
                if child.swap(id, node):
                    return True
        return False

    def ids(self) -> list[str]:
        below = [id for child in self.children if isinstance(child, Node) for id in child.ids()]  # noqa: A001
        return [self.id, *below] if self.id else below


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("page")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)

    def handle_endtag(self, tag: str) -> None:
        while len(self.open) > 1:
            if self.open.pop().tag == tag:
                return

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(html: str) -> Node:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.root


class Page:
    """The regions of a chat page; `missed` has the ids of missing targets."""

    def __init__(self, html: str = "") -> None:
        names = ("history", "live", "composer-state", "queue", "meter", "next-price",
                 "model-choice", "budget", "limits", "title", "restarting")  # fmt: skip
        regions: list[Node | str] = [Node("div", {"id": name}) for name in names]
        self.root = parsed(html) if html else Node("page", {}, regions)
        self.missed: list[str] = []

    def take(self, frame: str | bytes) -> None:
        for node in parsed(str(frame)).children:
            if isinstance(node, Node) and "hx-swap-oob" in node.attributes:
                self._take(node)

    def _take(self, node: Node) -> None:
        how, _, target_id = node.attributes.pop("hx-swap-oob").partition(":#")
        target = self.root.find(target_id or node.id)
        if target is None:
            self.missed.append(target_id or node.id)
        elif how == "outerHTML":
            self.root.swap(node.id, node)
        elif how == "innerHTML":
            target.children = node.children
        else:
            # Our script replaces an element that an append brings a second time.
            for child in node.children:
                known = isinstance(child, Node) and child.id and target.find(child.id)
                if not (known and isinstance(child, Node) and target.swap(child.id, child)):
                    target.children.append(child)

    @property
    def bookmark(self) -> str:
        """Return where this page ends, as its script reports it to the server."""
        history = self.root.find("history")
        found = history.attributes if history else {}
        return f"after={found.get('data-after', 0)}&mark={found.get('data-mark', '')}"

    @property
    def turns(self) -> list[tuple[str, str]]:
        """Return the turns that are shown, with their full text."""
        parts = (self.root.find(name) for name in ("history", "live"))
        nodes = (node for part in parts if part for node in part.children)
        return [
            (node.id, node.text)
            for node in nodes
            if isinstance(node, Node) and node.tag == "section"
        ]

    def text(self, id: str) -> str:
        found = self.root.find(id)
        return found.text if found else ""
