"""The answer after tools have run: their results in short."""

from __future__ import annotations

from agentweb.emulator.scenes.scene import Reply, say
from agentweb.emulator.scenes.view import Request, Use

_EXCERPT = 320
_SHOWN = 6


def answer_results(request: Request) -> Reply | None:
    if not request.after_results:
        return None
    uses = request.last_results
    parts = [_describe_use(use) for use in uses[:_SHOWN]]
    if len(uses) > _SHOWN:
        parts.append(f"… and {len(uses) - _SHOWN} more results.")
    return say(
        "\n\n".join(parts) or "The tools returned nothing.",
        thinking="The results are in; I report them.",
    )


def _describe_use(use: Use) -> str:
    text = use.result or ""
    if use.failed:
        return f"`{use.name}` failed:\n\n> {_quote(text)}"
    if not text.strip():
        return f"`{use.name}` returned nothing."
    size = f"{len(text):,} characters"
    return f"`{use.name}` returned {size}:\n\n```text\n{_excerpt(text)}\n```"


def _excerpt(text: str) -> str:
    text = text.replace("```", "'''").strip()
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT].rstrip()}\n…"


def _quote(text: str) -> str:
    return "\n> ".join(text.strip().splitlines()[:6]) or "(no reason given)"
