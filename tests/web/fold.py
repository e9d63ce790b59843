"""Applies frames to a page: a small equivalent of htmx's out-of-band swaps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = frozenset(("area", "br", "col", "hr", "img", "input", "link", "meta", "rect", "use", "path"))


@dataclass(eq=False)
class Node:
    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node | str] = field(default_factory=list)
    parent: Node | None = field(default=None, repr=False)

    @property
    def id(self) -> str:
        return self.attributes.get("id", "")

    @property
    def text(self) -> str:
        parts = (child if isinstance(child, str) else child.text for child in self.children)
        return " ".join("".join(parts).split())

    def find(self, id: str) -> Node | None:
        return next((node for node in self.walk() if node.attributes.get("id") == id), None)

    def replace(self, node: Node) -> None:
        """Put another node in the place of this one."""
        assert self.parent is not None
        siblings = self.parent.children
        siblings[siblings.index(self)] = node
        self.parent, node.parent = None, self.parent

    def fill(self, children: list[Node | str]) -> None:
        """Put others in the place of all children."""
        for child in self.children:
            if isinstance(child, Node):
                child.parent = None
        self.children = []
        for child in children:
            self.append(child)

    def append(self, child: Node | str) -> None:
        self.children.append(child)
        if isinstance(child, Node):
            child.parent = self

    @property
    def root(self) -> Node:
        node = self
        while node.parent is not None:
            node = node.parent
        return node

    def walk(self) -> Iterator[Node]:
        """Yield this node and those below it, in the order of the page."""
        ahead = [self]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += [child for child in reversed(node.children) if isinstance(child, Node)]

    def ids(self) -> list[str]:
        return [node.id for node in self.walk() if node.id]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("page")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].append(node)

    def handle_endtag(self, tag: str) -> None:
        while len(self.open) > 1:
            if self.open.pop().tag == tag:
                return

    def handle_data(self, data: str) -> None:
        self.open[-1].append(data)


def parsed(html: str) -> Node:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.root


class Page:
    """The regions of a chat page; `missed` has the ids of missing targets."""

    def __init__(self, html: str = "") -> None:
        names = ("history", "live", "composer-state", "queue", "egress-chip", "meter", "next-price",
                 "model-choice", "budget", "limits", "title", "restarting")  # fmt: skip
        regions: list[Node | str] = [Node("div", {"id": name}) for name in names]
        self.root = parsed(html) if html else Node("page")
        if not html:
            self.root.fill(regions)
        self.missed: list[str] = []
        self._found: dict[str, Node] = {}

    def find(self, id: str) -> Node | None:
        """Find a node by its id.

        One that was found before and is still in the page is not searched for: a rig asks for
        some of a long page many times a second.
        """
        node = self._found.get(id)
        if node is None or node.root is not self.root:
            node = self.root.find(id)
            if node is not None:
                self._found[id] = node
        return node

    def take(self, frame: str | bytes) -> None:
        for node in parsed(str(frame)).children:
            if isinstance(node, Node) and "hx-swap-oob" in node.attributes:
                self._take(node)

    def _take(self, node: Node) -> None:
        how, _, target_id = node.attributes.pop("hx-swap-oob").partition(":#")
        target = self.find(target_id or node.id)
        if target is None:
            self.missed.append(target_id or node.id)
        elif how == "outerHTML":
            target.replace(node)
        elif how == "innerHTML":
            target.fill(node.children)
        else:
            # Our script replaces an element that an append brings a second time.
            for child in node.children:
                known = target.find(child.id) if isinstance(child, Node) and child.id else None
                if isinstance(child, Node) and known is not None:
                    known.replace(child)
                else:
                    target.append(child)

    @property
    def bookmark(self) -> str:
        """Return where this page ends, as its script reports it to the server."""
        history = self.find("history")
        found = history.attributes if history else {}
        return f"after={found.get('data-after', 0)}&mark={found.get('data-mark', '')}"

    @property
    def sections(self) -> list[Node]:
        """Return the turns that are shown."""
        parts = (self.find(name) for name in ("history", "live"))
        nodes = (node for part in parts if part for node in part.children)
        return [node for node in nodes if isinstance(node, Node) and node.tag == "section"]

    @property
    def turns(self) -> list[tuple[str, str]]:
        """Return the turns that are shown, with their full text."""
        return [(node.id, node.text) for node in self.sections]

    def text(self, id: str) -> str:
        found = self.find(id)
        return found.text if found else ""
