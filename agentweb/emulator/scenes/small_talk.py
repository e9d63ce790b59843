"""The answer to a prompt that no other scene takes."""

from __future__ import annotations

import re

from agentweb.emulator.scenes.scene import Reply, say
from agentweb.emulator.scenes.view import Request

_GREETING = re.compile(r"^\W*(hi|hello|hey|good (morning|afternoon|evening))\b", re.IGNORECASE)
_IDENTITY = re.compile(r"\b(who|what) are you\b|\bare you (a )?(real|claude)\b", re.IGNORECASE)
_HELP = re.compile(r"\bhelp\b|what can you do", re.IGNORECASE)
_MARKDOWN = re.compile(r"\b(markdown|table|code|heading|list of)\b", re.IGNORECASE)
_RECALL = re.compile(
    r"what did i (?:just )?(?:say|ask)|my (?:first|last|previous) (?:message|question)",
    re.IGNORECASE,
)
_ECHO_LIMIT = 200

IDENTITY = (
    "I am the built-in emulator: no real model, but every byte of the Messages API around "
    "me is taken seriously."
)

_SAMPLER = """## A short sample

Markdown arrives in pieces and is shown as it comes:

- a list item with **bold** and *italic* words
- another one with `inline code`
- and a [link](https://example.com/) at the end

```python
def greet(name: str) -> str:
    return f"Hello, {name}!"
```

| What | How many | Why |
|---|---:|---|
| headings | 1 | to see them |
| lists | 1 | to read them |
| tables | 1 | to compare |

That was all of it."""

_ABILITIES = """Here is what I can do without a real model behind me:

- **talk**, with Markdown when you ask for a *table*, a *list* or *code*
- **stream long answers**: `Answer in 2000 words`
- **search, run code, cite** where the request offers the API's own tools or documents:
  `search the web for tea`, `run code: print('hello')`, `cite the document`
- **use tools**: `list files`, `read notes.txt`, `write notes.txt with content ...`,
  `fetch https://...`, `what time is it`
- **run the job search**: `Execute the job search prompt from search-prompt.txt`
- **fail on request**: `emulator:fault=overloaded:x2`, `emulator:fault=error_after:10` and more"""


def talk(request: Request) -> Reply | None:
    words = request.prompt
    if _IDENTITY.search(words):
        return say(
            f"{IDENTITY} Ask me for `help` to see what I can do.",
            thinking="The user asks who I am.",
        )
    if _HELP.search(words):
        return say(f"{_ABILITIES}\n\n{IDENTITY}")
    if _RECALL.search(words):
        return say(_recalled(request))
    if _MARKDOWN.search(words):
        return say(
            _SAMPLER,
            thinking="The user wants to see formatted text: a heading, a list, code, a table.",
        )
    if _GREETING.match(words):
        return say(f"Hello! {IDENTITY} Ask me for `help`, or just talk to me.")
    return say(_echo(request), thinking="Nothing special is asked; I say what I read.")


def _recalled(request: Request) -> str:
    earlier = request.prompts[:-1]
    if not earlier:
        return "I can't see that any more: this message is the first one in view."
    return (
        f"In view there are {len(earlier)} earlier messages of yours. The last one begins: "
        f"“{_short(earlier[-1])}”."
    )


def _echo(request: Request) -> str:
    count = len(request.prompts)
    seen = "This is the first message I see." if count <= 1 else f"I see {count} messages of yours."
    return (
        f"You wrote: “{_short(request.prompt)}”\n\n{seen} I answer from what is in view "
        f"of this request and nothing "
        "else. Ask me for `help` to see what I can do."
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _ECHO_LIMIT else f"{line[:_ECHO_LIMIT]}…"
