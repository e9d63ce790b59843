"""Documented and measured facts of each model, against the emulator's behaviour over HTTP.

The figures are repeated here from their sources: nothing is read from the emulator's own table. A
probe determines each fact by requests alone.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from agentweb.emulator.model_catalogue import FACTS
from agentweb.emulator.server import EmulatorServer
from tests.emulator.samples import TEXT, TOOL, assistant, user

DOCS, NEWS = "models overview, docs", "what is new, model pages"
LIVE = "live measurements of others, collected"
CACHING, COMPUTER = "prompt caching, docs", "computer use tool, docs"
EFFORTS = ("low", "medium", "high", "xhigh", "max")
KINDS = ("adaptive", "enabled", "disabled", "between_tools")
OLD_TOOLS = ("bash_20241022", "computer_20241022", "text_editor_20241022")
TOOLS = (*OLD_TOOLS, "bash_20250124", "computer_20250124", "computer_20251124",
         "computer_toolset_20260801", "text_editor_20250728")  # fmt: skip
NEWEST = ("computer_20250124", "computer_20251124")
MILLION = (1_000_000, 128_000)
ALWAYS, SWITCHED = ("adaptive",), ("adaptive", "disabled")


class Fact(NamedTuple):
    fact: str
    model: str
    value: Any
    source: str
    date: str


def rows(fact: str, source: str, date: str, **values: Any) -> list[Fact]:
    """Return one fact of several models, whose names are written as in `opus_5_5`."""
    return [
        Fact(fact, f"claude-{name.replace('_', '-')}", value, source, date)
        for name, value in values.items()
    ]


DOCUMENTED = [
    *rows("sizes", DOCS, "2026-11-10", fable_5_2=MILLION, mythos_5_2=MILLION, fable_5_1=MILLION,
          opus_5_5=MILLION, sonnet_5_5=MILLION, haiku_5_5=MILLION, fable_5=MILLION, opus_5=MILLION,
          sonnet_5=MILLION, opus_4_8=MILLION, opus_4_7=MILLION, opus_4_6=MILLION,
          sonnet_4_6=MILLION, haiku_4_5=(200_000, 64_000), sonnet_4_5=(200_000, 64_000),
          opus_4_5=(200_000, 64_000)),
    *rows("thinks unasked", LIVE, "2026-11-24", opus_5=True, sonnet_5=True, sonnet_5_5=True,
          haiku_5_5=True, opus_5_5=True, fable_5_2=True, fable_5_1=True, fable_5=True,
          opus_4_8=False, opus_4_7=False, sonnet_4_6=False, opus_4_6=False, haiku_4_5=False),
    *rows("thinking taken", LIVE, "2026-11-24", sonnet_5_5=("adaptive", "between_tools"),
          haiku_5_5=("adaptive", "disabled", "between_tools"), opus_5=SWITCHED, opus_5_5=ALWAYS),
    *rows("thinking taken", "adaptive thinking, docs", "2026-11-10", fable_5_2=ALWAYS,
          fable_5_1=ALWAYS, fable_5=ALWAYS, mythos_5=ALWAYS, sonnet_5=SWITCHED, opus_4_8=SWITCHED,
          opus_4_7=SWITCHED, opus_4_6=("adaptive", "enabled", "disabled"),
          sonnet_4_6=("adaptive", "enabled", "disabled"), haiku_4_5=("enabled", "disabled"),
          sonnet_4_5=("enabled", "disabled"), opus_4_5=("enabled", "disabled")),
    *rows("efforts", LIVE, "2026-11-24", opus_4_6=("low", "medium", "high", "max"),
          sonnet_4_6=("low", "medium", "high", "max"), opus_4_5=("low", "medium", "high"),
          haiku_4_5=(), sonnet_4_5=()),
    *rows("efforts", "effort, docs", "2026-11-10", fable_5_2=EFFORTS, opus_5_5=EFFORTS,
          sonnet_5_5=EFFORTS, haiku_5_5=EFFORTS, opus_5=EFFORTS, sonnet_5=EFFORTS,
          opus_4_8=EFFORTS, opus_4_7=EFFORTS),
    *rows("efforts without thinking", LIVE, "2026-11-24", opus_5=("low", "medium", "high"),
          haiku_5_5=("low", "medium", "high", "xhigh")),
    *rows("efforts between tools", LIVE, "2026-11-24", sonnet_5_5=("low", "medium", "high")),
    *rows("smallest cached", LIVE, "2026-11-24", sonnet_5_5=512, opus_5_5=512, opus_5=512,
          sonnet_5=1_024, opus_4_7=2_048, haiku_4_5=4_096),
    *rows("smallest cached", CACHING, "2026-11-10", fable_5_1=512, fable_5=512, opus_4_8=1_024,
          opus_4_6=4_096, sonnet_4_6=1_024, sonnet_4_5=1_024, opus_4_5=4_096),
    *rows("forced tools", NEWS, "2026-11-24", fable_5_1=False, fable_5_2=False, opus_5_5=False,
          sonnet_5_5=False, haiku_5_5=True, opus_5=True, sonnet_5=True, haiku_4_5=True),
    *rows("prefill", "API reference, refusals by third parties", "2026-11-10", opus_4_6=False,
          sonnet_4_6=False, opus_5_5=False, sonnet_5=False, haiku_5_5=False, haiku_4_5=True,
          sonnet_4_5=True, opus_4_5=True),
    *rows("temperature", "API reference, refusals by third parties", "2026-11-10", opus_4_7=False,
          opus_4_8=False, sonnet_5=False, haiku_5_5=False, opus_4_6=True, sonnet_4_6=True,
          haiku_4_5=True),
    *rows("read by", LIVE, "2026-11-24", opus_5_5=("claude-fable-5-1", "claude-mythos-5-1")),
    *rows("retires", "model deprecations, docs; deprecated models of SDK 2.11.0", "2026-10-01",
          sonnet_4_5=("deprecated", "2026-09-30T00:00:00Z", "2026-11-30T00:00:00Z"),
          haiku_4_5=("active", None, None), opus_4_6=("active", None, None),
          sonnet_5_5=("active", None, None)),
    *rows("tools lacked", "live requests of others", "2026-09-22",
          opus_5_5=(*OLD_TOOLS, *NEWEST), opus_5=(*OLD_TOOLS, "computer_20250124"),
          fable_5_1=(*OLD_TOOLS, "computer_20250124"),
          sonnet_5=(*OLD_TOOLS, "computer_20250124"),
          opus_4_7=(*OLD_TOOLS, "computer_20250124", "computer_toolset_20260801"),
          haiku_4_5=(*OLD_TOOLS, "computer_20251124", "computer_toolset_20260801")),
    *rows("tools lacked", f"{COMPUTER}; {NEWS}", "2026-10-07", haiku_5_5=(*OLD_TOOLS, *NEWEST)),
    *rows("takes a place", "data residency, docs; a live refusal of 2026-10", "2026-10-09",
          haiku_4_5=False, sonnet_4_5=False, opus_4_5=False, haiku_5_5=True, sonnet_4_6=True),
    *rows("runs fast", "fast mode, docs", "2026-10-30", opus_5_5="fast", opus_5="fast",
          opus_4_8="fast", opus_4_6="standard", opus_4_7=None, sonnet_5_5=None, haiku_4_5=None),
]  # fmt: skip


class Client:
    """Sends requests to one server, with the headers of a client."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(
        self, model: str, *, path: str = "/v1/messages", beta: str = "", **fields: Any
    ) -> tuple[int, Any]:
        base = {"model": model, "max_tokens": 2_000, "messages": [user(TEXT)]}
        body = json.dumps(base | fields).encode() if path == "/v1/messages" else None
        headers = {"x-api-key": "sk-a", "anthropic-version": "2023-06-01", "anthropic-beta": beta}
        asked = urllib.request.Request(self._url + path, body, headers)
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def takes(self, model: str, **fields: Any) -> bool:
        return self(model, **fields)[0] == 200


def find_sizes(ask: Client, model: str) -> Any:
    told = ask(model, path=f"/v1/models/{model}")[1]
    most = told["max_tokens"]
    assert not ask.takes(model, max_tokens=most + 1)
    assert ask.takes(model, max_tokens=most)
    return told["max_input_tokens"], most


def think_unasked(ask: Client, model: str) -> Any:
    content = ask(model, system="You plan.", max_tokens=8_000)[1]["content"]
    return any(block["type"] == "thinking" for block in content)


def list_thinking(ask: Client, model: str) -> Any:
    more = {"enabled": {"budget_tokens": 1_024}}
    return tuple(
        kind for kind in KINDS if ask.takes(model, thinking={"type": kind} | more.get(kind, {}))
    )


def list_efforts(ask: Client, model: str, **fields: Any) -> Any:
    return tuple(e for e in EFFORTS if ask.takes(model, output_config={"effort": e}, **fields))


def list_efforts_without(ask: Client, model: str) -> Any:
    return list_efforts(ask, model, thinking={"type": "disabled"})


def list_efforts_between(ask: Client, model: str) -> Any:
    return list_efforts(ask, model, thinking={"type": "between_tools"})


def find_smallest_cached(ask: Client, model: str) -> Any:
    """Return the tokens of the shortest prompt that is cached, by binary search."""

    def count_cached(words: int) -> int:
        block = {"type": "text", "text": f"{words} " + "a " * words}
        system = [block | {"cache_control": {"type": "ephemeral"}}]
        usage = ask(model, system=system)[1]["usage"]
        return int(usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"])

    low, high = 0, 32_768
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if count_cached(middle) else (middle, high)
    # One more word is one or two more tokens.
    found = count_cached(high)
    return next((size for size in (512, 1_024, 2_048, 4_096) if 0 <= found - size < 4), found)


def take_forced_tools(ask: Client, model: str) -> Any:
    named = {"type": "tool", "name": TOOL["name"]}
    choices = ({"type": "any"}, named)
    taken = {ask.takes(model, tools=[TOOL], tool_choice=choice) for choice in choices}
    assert len(taken) == 1
    return taken.pop()


def take_prefill(ask: Client, model: str) -> Any:
    return ask.takes(model, messages=[user(TEXT), assistant(TEXT)])


def take_temperature(ask: Client, model: str) -> Any:
    return ask.takes(model, temperature=0.5)


def list_readers(ask: Client, model: str) -> Any:
    """Return the models that keep its thinking when they get it."""
    first = ask(model, thinking={"type": "adaptive"}, messages=[user(TEXT)])[1]
    said = [user(TEXT), assistant(*first["content"]), user(TEXT)]
    listed = ask(model, path="/v1/models?limit=100")[1]["data"]
    others = sorted(row["id"] for row in listed if row["id"] != model)
    beta = "thinking-binding-controls-2026-08-01"
    answers = {name: ask(name, messages=said, beta=beta) for name in others}
    return tuple(
        name
        for name, (status, told) in answers.items()
        if status == 200 and told["input_transformations"] == []
    )


def find_retirement(ask: Client, model: str) -> Any:
    told = ask(model, path=f"/v1/models/{model}")[1]
    return told["lifecycle"], told["deprecated_at"], told["retires_at"]


def list_lacking_tools(ask: Client, model: str) -> Any:
    names = {"bash": "bash", "text_editor": "str_replace_based_edit_tool", "computer": "computer"}
    size = {"display_width_px": 800, "display_height_px": 600}

    def tool(kind: str) -> dict[str, Any]:
        if "toolset" in kind:
            return {"type": kind}
        family = kind.rpartition("_")[0]
        return {"type": kind, "name": names[family]} | (size if family == "computer" else {})

    return tuple(kind for kind in TOOLS if not ask.takes(model, tools=[tool(kind)]))


def take_place(ask: Client, model: str) -> Any:
    return ask.takes(model, inference_geo="global")


def find_speed(ask: Client, model: str) -> Any:
    status, told = ask(model, speed="fast")
    return told["usage"]["speed"] if status == 200 else None


PROBES: dict[str, Callable[[Client, str], Any]] = {
    "sizes": find_sizes,
    "thinks unasked": think_unasked,
    "thinking taken": list_thinking,
    "efforts": list_efforts,
    "efforts without thinking": list_efforts_without,
    "efforts between tools": list_efforts_between,
    "smallest cached": find_smallest_cached,
    "forced tools": take_forced_tools,
    "prefill": take_prefill,
    "temperature": take_temperature,
    "read by": list_readers,
    "retires": find_retirement,
    "tools lacked": list_lacking_tools,
    "takes a place": take_place,
    "runs fast": find_speed,
}


@pytest.fixture(scope="module")
def client(served: EmulatorServer) -> Client:
    return Client(served.url)


@pytest.mark.parametrize("fact", DOCUMENTED, ids=lambda fact: f"{fact.fact} {fact.model}")
def test_a_documented_fact_is_what_the_emulator_does(client: Client, fact: Fact) -> None:
    found = PROBES[fact.fact](client, fact.model)
    wanted = fact.value
    if fact.fact == "tools lacked":
        found, wanted = set(found), set(wanted)
    assert found == wanted, f"{fact.source}, {fact.date}"


def test_every_row_of_the_models_says_where_it_is_from() -> None:
    told = json.loads(FACTS.read_bytes())["facts"]
    assert all(row["source"] and len(row["date"]) == len("2026-11-24") for row in told)
    assert all(fact.source and fact.date <= "2026-11-24" for fact in DOCUMENTED)
