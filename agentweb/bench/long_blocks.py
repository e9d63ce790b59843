"""A long code block, a long table and a report full of links, as a model writes them, each with its
twin of plain words: paragraphs of as many bytes.

The scripted model gives one for "Please show the code", its twin for "Please show the plain code".
"""

from __future__ import annotations

from agentweb.emulator.script import say, when

CODE = "Here it is:\n\n```python\n{}```\n\nThat was the code.".format(
    "".join(f"def part_{n}(value: int) -> int:  # the function of line {n}\n" for n in range(400))
)
TABLE = "The table:\n\n| town | people | note |\n|---|--:|---|\n{}\nThat was the table.".format(
    "".join(f"| Town {n} | {n * 1000} | some words about it |\n" for n in range(200))
)
LINKS = "The report:\n\n{}\nThat was the report.".format(
    "".join(
        f"- **Job {n}** at Example {n}: https://jobs.example.org/offers/{n}?from=search_{n},"
        f" write to jobs{n}@example.org or see [the offer](https://www.example.org/{n})\n"
        for n in range(40)
    )
)
KINDS = {"code": CODE, "table": TABLE, "links": LINKS}
#: All of it in one answer, too.
ANSWERS = KINDS | {"whole": f"{LINKS}\n\n{CODE}\n\n{TABLE}"}
_SENTENCE = "The words of a plain answer have no markup and break where the page is narrow. "
#: Sentences of a paragraph.
_SENTENCES = 5


def make_plain(text: str) -> str:
    """Return paragraphs of plain words, of as many bytes as the text."""
    paragraph = _SENTENCE * _SENTENCES + "\n\n"
    size = len(text.encode())
    return (paragraph * (size // len(paragraph) + 1))[:size].rstrip() + "."


SCRIPT = [
    *(when(f"the plain {kind}", say(make_plain(text))) for kind, text in ANSWERS.items()),
    *(when(f"the {kind}", say(text)) for kind, text in ANSWERS.items()),
]
