"""Generated content blocks: every kind the API accepts today, plain and unusual.

All randomness comes from one generator, so a seed identifies a conversation.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Callable
from typing import Any

from conversations.context.view import wire
from tests.context.samples import IMAGE, result, text, use

WORDS = [
    "the price of 1,250.50 EUR", "https://example.com/jobs/4711?x=1", "notes/todays-jobs.md",
    "漢字かな混じり文", "👩‍👩‍👧‍👦 family", "e\u0301a\u0308", "🇩🇪🇫🇷", "नमस्ते",
    "[CONTEXT SUMMARY]", "line\nline\n", "\u0000\u001b[31m", 'quo"te\\', "ERROR: it failed",
    "PROJ-1234", "</transcript>", " ", "\r\n", "한글", "\u200fעברית\u202c", "\u1112\u1161\u11ab",
    "<p>bold</p>", "\ufeff\u2028", 'thinking"',
]  # fmt: skip
TOOLS = ["fetch_url", "read_file", "list_files", "recall", "write_file"]
PDF = base64.b64encode(b"%PDF-1.4 /Type /Page /Type /Page").decode()
Made = dict[str, Any]


class Parts:
    """Makes blocks; `scale` is the size of large texts, in characters."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.calls = 0
        self.thoughts_made = 0
        self.scale = self.chance.choice([20, 20, 200, 200, 200, 2_000, 2_000, 12_000])

    def words(self, most: int) -> str:
        chance = self.chance
        size = chance.randint(1, most)
        piece = "".join(chance.choices(WORDS, k=min(12, 1 + size // 12)))
        return "x" + (piece * (1 + size // len(piece)))[:size]

    def call_id(self, prefix: str = "toolu") -> str:
        self.calls += 1
        return f"{prefix}_{self.calls}"

    def image(self) -> Made:
        url: Made = {"type": "url", "url": "https://example.com/a.png"}
        file: Made = {"type": "file", "file_id": "file_1"}
        return self.chance.choice(
            [IMAGE, IMAGE, {"type": "image", "source": url}, {"type": "image", "source": file}]
        )

    def document(self) -> Made:
        sources: list[Made] = [
            {"type": "text", "media_type": "text/plain", "data": self.words(200)},
            {"type": "base64", "media_type": "application/pdf", "data": PDF},
            {"type": "url", "url": "https://example.com/a.pdf"},
            {"type": "content", "content": self.words(80)},
            {"type": "content", "content": [text(self.words(80)), IMAGE]},
            {"type": "file", "file_id": "file_2"},
        ]
        block: Made = {"type": "document", "source": self.chance.choice(sources)}
        if self.chance.random() < 0.5:
            block |= {"title": "A paper", "context": "old", "citations": {"enabled": True}}
        return block

    def found(self) -> Made:
        return {
            "type": "search_result", "source": "https://example.com/s", "title": self.words(20),
            "content": [text(self.words(60))],
        }  # fmt: skip

    def said_by_user(self) -> list[Made]:
        """Make what a prompt holds besides results: texts, pictures, papers, in any order."""
        chance = self.chance
        parts = [text(self.words(self.scale if chance.random() < 0.1 else 80))]
        for share, make in ((0.12, self.image), (0.08, self.document), (0.03, self.found)):
            if chance.random() < share:
                parts.append(make())
        if chance.random() < 0.02:
            parts.append({"type": "container_upload", "file_id": "file_3"})
        if chance.random() < 0.1:
            parts.append(text(self.words(30)))
        chance.shuffle(parts)
        return parts

    def thoughts(self) -> list[Made]:
        """Make thinking with a signature of its own, also hidden or redacted."""
        found: list[Made] = []
        chance = self.chance.random()
        while chance < 0.35:
            self.thoughts_made += 1
            name = f"sig{self.thoughts_made}"
            if chance < 0.05:
                found.append({"type": "redacted_thinking", "data": name})
            else:
                shown = "" if chance < 0.1 else self.words(60)
                found.append({"type": "thinking", "thinking": shown, "signature": name})
            chance = self.chance.random() * 2
        return found

    def text_block(self) -> Made:
        block = text(self.words(120))
        if self.chance.random() < 0.05:
            cited = {"type": "char_location", "cited_text": "x", "document_index": 0}
            block["citations"] = [cited | {"start_char_index": 0, "end_char_index": 1}]
        return block

    def use(self) -> Made:
        kind = self.chance.random()
        given: Made = {"path": self.words(30), "n": 1, "deep": [{"a": None}]}
        if kind < 0.05:
            given = {}
        elif kind < 0.15:
            given = {"漢": self.words(self.scale), "url": "https://example.com/" + "a/" * 40}
        made = use(self.call_id(), self.chance.choice(TOOLS), **given)
        return made | {"caller": {"type": "direct"}} if kind > 0.95 else made

    def result(self, id: str) -> Made:
        """Make a result in any form: none, empty, a text, JSON, a list, an error."""
        kind = self.chance.random()
        if kind < 0.05:
            return {"type": "tool_result", "tool_use_id": id}
        if kind < 0.1:
            return result(id, self.chance.choice(["", []]))
        if kind < 0.2:
            return result(id, self.words(self.scale), is_error=True)
        if kind < 0.35:
            return result(id, self.nested(), is_error=False)
        if kind < 0.5:
            rows = [{"id": n, "name": self.words(20)} for n in range(self.scale // 60)]
            return result(id, wire.encode({"rows": rows, "next": None}))
        return result(id, self.words(self.scale))

    def nested(self) -> list[Made]:
        makers: list[Callable[[], Made]] = [self.image, self.document, self.found]
        parts = [text(self.words(self.scale)), self.chance.choice(makers)(), text(self.words(40))]
        return self.chance.sample(parts, k=self.chance.randint(1, 3))

    def served(self) -> tuple[Made, Made]:
        """Make a call of a tool the API runs itself, and its result."""
        kind = self.chance.choice(list(SERVED))
        name = self.call_id("mcptoolu" if kind == "mcp" else "srvtoolu")
        call: Made = {"type": "server_tool_use", "id": name, "name": kind, "input": {"query": "a"}}
        if kind == "mcp":
            call |= {"type": "mcp_tool_use", "server_name": "files"}
        content = self.chance.choice(SERVED[kind])
        return call, {"type": f"{kind}_tool_result", "tool_use_id": name, "content": content}


_PAGE = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a"}}
#: What the results of server tools hold, by the tool.
SERVED: dict[str, list[Any]] = {
    "web_search": [
        [],
        [{"type": "web_search_result", "title": "t", "url": "u", "encrypted_content": "e" * 300}],
        {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
    ],
    "web_fetch": [
        {"type": "web_fetch_result", "url": "u", "content": _PAGE},
        {"type": "web_fetch_tool_result_error", "error_code": "url_not_accessible"},
    ],
    "code_execution": [
        {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0,
         "content": [{"type": "code_execution_output", "file_id": "file_4"}]},
    ],
    "bash_code_execution": [
        {"type": "bash_code_execution_result", "stdout": "a\n" * 90, "stderr": "",
         "return_code": 0, "content": []},
    ],
    "text_editor_code_execution": [
        {"type": "text_editor_code_execution_view_result", "content": "a", "file_type": "text"},
    ],
    "mcp": ["plain", [{"type": "text", "text": "listed"}]],
}  # fmt: skip
