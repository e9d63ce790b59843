"""The official Python SDK: its helpers for streams, tools, parsed outputs, counting and models."""

from __future__ import annotations

import anthropic
from checks import MODEL, check, finish
from pydantic import BaseModel

client = anthropic.Anthropic(max_retries=0)
HELLO = [{"role": "user", "content": "Hello"}]


class City(BaseModel):
    name: str
    people: int


@anthropic.beta_tool
def list_files(path: str = "") -> str:
    """List the files of a folder."""
    return "a.txt\nb.txt"


@check("whole answer")
def create() -> None:
    assert client.messages.create(model=MODEL, max_tokens=500, messages=HELLO).content[0].text


@check("messages.stream")
def stream() -> None:
    with client.messages.stream(model=MODEL, max_tokens=500, messages=HELLO) as opened:
        text = "".join(opened.text_stream)
        assert text
        assert opened.get_final_message().stop_reason == "end_turn"


@check("tool runner")
def run_tools() -> None:
    runner = client.beta.messages.tool_runner(
        model=MODEL,
        max_tokens=1_000,
        tools=[list_files],
        messages=[{"role": "user", "content": "list files"}],
    )
    assert "b.txt" in runner.until_done().content[-1].text


@check("count_tokens")
def count() -> None:
    assert client.messages.count_tokens(model=MODEL, messages=HELLO).input_tokens > 0


@check("messages.parse")
def parse() -> None:
    answer = client.messages.parse(
        model=MODEL,
        max_tokens=500,
        messages=[{"role": "user", "content": "Bern has 140000 people."}],
        output_format=City,
    )
    assert isinstance(answer.parsed_output, City)


@check("models.list")
def list_models() -> None:
    assert MODEL in [model.id for model in client.models.list(limit=100)]


@check("batches")
def batch() -> None:
    order = {"model": MODEL, "max_tokens": 100, "messages": HELLO}
    made = client.messages.batches.create(requests=[{"custom_id": "one", "params": order}])
    assert made.processing_status in ("in_progress", "ended")


@check("files")
def upload() -> None:
    made = client.beta.files.upload(file=("a.txt", b"Hello", "text/plain"))
    assert made.size_bytes == 5


finish()
