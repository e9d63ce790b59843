"""Synthetic tasks in which much that looks alike is read, and single facts of it are needed later.

Mails are read by number, a page and a PDF in parts, files under deep and under Windows paths, and
commands are run; all with results of 3 to 6 KB of the same words. A fact is a code that stands in
one result only (or, of commands, in the agent's own input); the answer that needs it names its
subject in other words around it, as agents do. Subjects share their parts: a sender, a topic or a
folder alone tells nothing apart. The same on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from conversations.lab.records import Record, read_record

#: Results of a task, and facts that are needed of them.
RESULTS, NEEDED = 60, 40
_PEOPLE = ("Katrin Vogel", "Ahmed Yilmaz", "Mei Tanaka", "Ola Nordmann", "Sofia Ricci", "Jan Novak")
_TOPICS = (
    "heating invoice", "conference hotel", "lease renewal", "laptop order", "visa letter",
    "audit schedule", "parking permit", "translation quote", "catering offer", "shipping delay",
)  # fmt: skip
_PLACES = ("Tallinn", "Porto", "Gdansk", "Bergen", "Triest", "Varna")
_FIGURES = (
    "port dues", "ferry traffic", "dredging costs", "crane hours", "container turnover",
    "pilot fees", "night shifts", "customs delays", "rail links", "shore power",
)  # fmt: skip
_SERVICES = ("billing", "search", "mailer", "gateway", "archive", "reports")
_REGIONS = (
    "eu-north", "eu-south", "us-east", "us-west", "ap-south", "ap-east", "sa-east", "af-south",
    "me-west", "ca-east",
)  # fmt: skip
_FILLER = (
    "the team noted that costs and dates may change before the end of the year so please check all"
    " figures with the office and send any questions about the offer plan or list to the usual"
    " address thank you for your patience we look at each case in turn and answer within a week"
)

#: The subject of each fact: two words that only together name it.
Subjects = list[tuple[str, str]]
#: Writes a call's tool, input and the head of its result, from its number and subject.
Reads = Callable[[int, str, str], tuple[str, dict[str, Any], str]]


def make_tasks() -> Iterator[Record]:
    """Yield the tasks, each a record with facts."""
    for name, (firsts, seconds, reads, question) in _TASKS.items():
        yield _make_task(name, list(product(firsts, seconds)), reads, question)


def _make_task(name: str, subjects: Subjects, reads: Reads, question: str) -> Record:
    chance = random.Random(name)  # noqa: S311  (nobody guesses anything)
    chance.shuffle(subjects)
    messages: list[dict[str, Any]] = [_say("user", f"Please go through all of this: {name}.")]
    codes: list[str] = []
    for number, (first, second) in enumerate(subjects[:RESULTS]):
        codes.append(f"{chance.choice('ABCDEFGH')}{chance.randrange(10**6, 10**7)}")
        tool, tool_input, head = reads(number, first, second)
        if name == "commands":
            tool_input["command"] += f" --tag {codes[-1]}"
        else:
            head += f" The reference is {codes[-1]}."
        messages += _call(f"toolu_{number}", tool, tool_input, _fill(chance, head))
    messages.append(_say("assistant", "I have gone through all of it."))
    facts = []
    for number in chance.sample(range(RESULTS), NEEDED):
        answer = question.format(first=subjects[number][0], second=subjects[number][1])
        messages.append(_say("user", "And the next one?"))
        messages.append(_say("assistant", f"{answer} {codes[number]}."))
        facts.append(
            {
                "fact": codes[number],
                "first_seen_message": 2 * number + (1 if name == "commands" else 2),
                "used_at_message": len(messages) - 1,
                "sole_source": True,
            }
        )
    return read_record({"id": f"made-{name}", "messages": messages, "facts": facts})


def _say(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _call(id: str, tool: str, tool_input: dict[str, Any], text: str) -> list[dict[str, Any]]:
    use = {"type": "tool_use", "id": id, "name": tool, "input": tool_input}
    result = {"type": "tool_result", "tool_use_id": id, "content": text}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def _fill(chance: random.Random, head: str) -> str:
    """Put a text in the middle of a long one of common words."""
    words = chance.choices(_FILLER.split(), k=chance.randrange(500, 1_000))
    middle = len(words) // 2
    return f"{' '.join(words[:middle])}\n{head}\n{' '.join(words[middle:])}"


def _read_mail(number: int, sender: str, topic: str) -> tuple[str, dict[str, Any], str]:
    text = f"From: {sender}\nSubject: Re: {topic}\nHello, here is what you asked for."
    return "read_mail", {"uid": 4_000 + 7 * number, "folder": "INBOX"}, text


def _read_page(number: int, place: str, figure: str) -> tuple[str, dict[str, Any], str]:
    tool_input = {"url": "https://example.org/report", "start": 5_000 * number, "length": 5_000}
    return "fetch_url", tool_input, f"{figure.capitalize()} in {place} were as planned."


def _read_pdf(number: int, place: str, figure: str) -> tuple[str, dict[str, Any], str]:
    tool_input = {"path": "reports/yearbook.pdf", "part": f"page {number + 1}"}
    return "read_file", tool_input, f"Table {number + 1}: {figure} of {place}, by quarter."


def _read_deep(number: int, service: str, region: str) -> tuple[str, dict[str, Any], str]:
    path = f"/srv/platform/deploy/overlays/{region}/apps/{service}/config/settings.toml"
    return "read_file", {"path": path}, f"[runtime]\ntimeout = {900 + number}"


def _read_windows(number: int, service: str, region: str) -> tuple[str, dict[str, Any], str]:
    path = rf"C:\Users\ada\Documents\Projekte 2026\{region}\{service}\Kalkulation (Kopie).csv"
    return "read_file", {"path": path}, f"Summe;{1_000 + number}"


def _run(number: int, service: str, region: str) -> tuple[str, dict[str, Any], str]:
    del number
    command = f"deployctl restart {service} --region {region} --wait"
    return "bash", {"command": command}, "restarted, all instances answer again"


_TASKS: dict[str, tuple[tuple[str, ...], tuple[str, ...], Reads, str]] = {
    "mails": (_PEOPLE, _TOPICS, _read_mail, "In the mail of {first} on the {second} it is"),
    "page": (_PLACES, _FIGURES, _read_page, "For {first} the report says of {second}:"),
    "pdf": (_PLACES, _FIGURES, _read_pdf, "The table on {second} of {first} has"),
    "deep paths": (_SERVICES, _REGIONS, _read_deep, "The settings of {first} for {second} have"),
    "Windows paths": (_SERVICES, _REGIONS, _read_windows, "Kalkulation {first}, {second}:"),
    "commands": (_SERVICES, _REGIONS, _run, "I restarted {first} in {second} with the tag"),
}
