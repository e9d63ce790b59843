"""pydantic-ai: answers, streams, tools, outputs by tool and by schema."""

from __future__ import annotations

import asyncio

from checks import MODEL, check, finish
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput

NAME = f"anthropic:{MODEL}"
FACT = "Bern has 140000 people."


class City(BaseModel):
    name: str
    people: int


@check("run")
def run() -> None:
    assert Agent(NAME).run_sync("Hello").output


@check("run_stream")
def stream() -> None:
    async def read() -> str:
        async with Agent(NAME).run_stream("Hello") as opened:
            return "".join([part async for part in opened.stream_text(delta=True)])

    assert len(asyncio.run(read())) > 3


@check("tool round")
def run_tools() -> None:
    agent = Agent(NAME)

    @agent.tool_plain
    def list_files(path: str = "") -> str:
        """List the files of a folder."""
        return "a.txt\nb.txt"

    assert "b.txt" in agent.run_sync("list files").output


@check("output by a tool")
def structure_by_tool() -> None:
    assert isinstance(Agent(NAME, output_type=City).run_sync(FACT).output, City)


@check("output by a schema")
def structure_by_schema() -> None:
    assert isinstance(Agent(NAME, output_type=NativeOutput(City)).run_sync(FACT).output, City)


finish()
